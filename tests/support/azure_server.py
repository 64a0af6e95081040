"""
A server of Azure's blobs on the loopback interface: Azurite, which keeps everything in memory.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from tests.support.maven import PrerequisiteMissing, alone, cache

VERSION: Final = "3.37.0"
"""3.35 ignores the name at which a list begins (``startFrom``), for which delta-rs asks."""
CONTAINER: Final = "lake"
ACCOUNT: Final = "barnabas"
KEY: Final = "bm90LWEtc2VjcmV0"
_PROGRAM: Final = "node_modules/azurite/dist/src/blob/main.js"
_OPTIONS: Final = (
    "--inMemoryPersistence",
    "--disableTelemetry",
    "--skipApiVersionCheck",  # pyarrow and obstore ask for newer ones.
    "--silent",  # What it said of each request would fill the pipe.
    "--blobHost=127.0.0.1",
    "--blobPort=0",
)
_LISTENS: Final = re.compile(r"listens on http://127\.0\.0\.1:(\d+)")
_PATIENCE_S: Final = 600


class AzureServer:
    def __init__(self, port: int) -> None:
        self.authority = f"127.0.0.1:{port}"

    @property
    def storage(self) -> Mapping[str, str]:
        """
        The credentials, by environment variable.
        """
        return {
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": f"http://{self.authority}/{ACCOUNT}",
        }

    @property
    def hadoop(self) -> Mapping[str, str]:
        """
        The credentials, by option of Hadoop.
        """
        return {
            "fs.azure.account.key": KEY,
            "fs.azure.abfs.endpoint": self.authority,
            "fs.azure.always.use.https": "false",
        }

    def url(self, path: str, scheme: str = "abfss") -> str:
        return f"{scheme}://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net/{path}"

    def put_directory(self, directory: Path, path: str) -> None:
        for file in directory.rglob("*"):
            if file.is_file():
                name = f"{CONTAINER}/{path}/{file.relative_to(directory)}"
                with self.client.open_output_stream(name) as stream:
                    stream.write(file.read_bytes())

    def files(self, path: str) -> list[str]:
        """
        The files below *path*, as the container lists them.
        """
        from pyarrow import fs  # noqa: PLC0415  # an extra

        chosen = fs.FileSelector(f"{CONTAINER}/{path}", recursive=True, allow_not_found=True)
        found = self.client.get_file_info(chosen)
        return sorted(
            each.path.removeprefix(f"{CONTAINER}/")
            for each in found
            if each.type == fs.FileType.File
        )

    def read(self, file: str) -> bytes:
        with self.client.open_input_file(f"{CONTAINER}/{file}") as stream:
            data: bytes = stream.read()
        return data

    @cached_property
    def client(self) -> Any:
        from pyarrow import fs  # noqa: PLC0415  # an extra

        return fs.AzureFileSystem(
            ACCOUNT,
            account_key=KEY,
            blob_storage_authority=self.authority,
            dfs_storage_authority=self.authority,
            blob_storage_scheme="http",
            dfs_storage_scheme="http",
        )


@contextmanager
def azure_server() -> Iterator[AzureServer]:
    """
    A server with an empty container.

    Raises:
        PrerequisiteMissing: Azurite cannot be fetched, or there is no Node.js.
    """
    if shutil.which("node") is None:
        raise PrerequisiteMissing("no node on the path to run Azurite")
    folder = _installed()
    with subprocess.Popen(
        ["node", _PROGRAM, *_OPTIONS],
        cwd=folder,
        env={**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            server = AzureServer(_port(process))
            server.client.create_dir(CONTAINER, recursive=False)
            yield server
        finally:
            process.kill()


def _port(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        listens = _LISTENS.search(line)
        if listens is not None:
            return int(listens[1])
    raise AssertionError(f"Azurite ended: {said[-500:]}")


def _installed() -> Path:
    root = cache("azurite")
    folder = root / VERSION
    complete = root / f"{VERSION}.complete"
    with alone(root):
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            _fetch(folder)
            complete.touch()
    return folder


def _fetch(folder: Path) -> None:
    if shutil.which("npm") is None:
        raise PrerequisiteMissing("no npm on the path to fetch Azurite")
    (folder / "package.json").write_text('{"private": true}')
    done = subprocess.run(
        ["npm", "install", "--silent", "--no-audit", "--ignore-scripts", f"azurite@{VERSION}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    if done.returncode:
        raise PrerequisiteMissing(
            f"npm cannot fetch Azurite: {(done.stderr or done.stdout)[-200:]}"
        )
