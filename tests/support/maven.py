"""
Jars from Maven Central, fetched once into a cache directory of the user.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_NOTHING_ELSE = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
)


class PrerequisiteMissing(Exception):
    """
    What these programs need is not on this machine; the message says what, in one line.
    """


def cache(name: str) -> Path:
    """
    The cache directory of that *name*.
    """
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "barnabas" / name


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """
    Nobody else writes to the cache *directory* meanwhile, as tests in several processes would.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def jars(
    directory: Path, name: str, artifacts: Mapping[str, str], *, with_dependencies: bool = True
) -> Path:
    """
    The subdirectory *name* of the cache *directory* with the jars of *artifacts*: their versions by
    ``group:artifact``.

    Raises:
        PrerequisiteMissing: they are not there yet, and Maven is missing or could not fetch them.
    """
    libraries = directory / name
    complete = directory / ("complete" if name == "libs" else f"{name}.complete")
    if not complete.exists():
        with alone(directory):
            if not complete.exists():
                _fetch(libraries, _pom(artifacts, "" if with_dependencies else _NOTHING_ELSE))
                complete.touch()
    return libraries


def _fetch(libraries: Path, pom: str) -> None:
    if shutil.which("mvn") is None:
        raise PrerequisiteMissing(
            f"no mvn on the path to fetch the jars of {libraries.parent.name}"
        )
    libraries.mkdir(exist_ok=True)
    (libraries / "pom.xml").write_text(pom)
    copy = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={libraries}"]
    try:
        subprocess.run(copy, cwd=libraries, check=True, capture_output=True, text=True, timeout=600)
    except subprocess.CalledProcessError as error:
        first = (error.stdout or error.stderr).strip().splitlines()[:1]
        what = libraries.parent.name
        raise PrerequisiteMissing(f"Maven cannot fetch the jars of {what}: {first}") from error


def _pom(artifacts: Mapping[str, str], exclusions: str) -> str:
    dependencies = ""
    for artifact, version in artifacts.items():
        group, name = artifact.split(":")
        dependencies += (
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version>{exclusions}</dependency>\n"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0">\n<modelVersion>4.0.0</modelVersion>\n'
        "<groupId>local</groupId><artifactId>jars</artifactId><version>1</version>\n"
        f"<packaging>pom</packaging>\n<dependencies>\n{dependencies}</dependencies>\n</project>\n"
    )
