"""
Jars from Maven Central, fetched once into a cache directory of the user.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_NOTHING_ELSE = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
)

_TRIES: Final = 3
_PATIENCE: Final = 600
"""Seconds that one try may take."""
_PAUSE: Final = 10
"""Seconds between tries: a registry that was busy may not be any more."""


class PrerequisiteMissing(Exception):
    """
    What these programs need is not on this machine; the message says what, in one line.
    """


def cache(name: str) -> Path:
    """
    The cache directory of that *name*.
    """
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    directory = Path(root) / "barnabas" / name
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        # Not everybody has a home that can be written to.
        return Path(tempfile.gettempdir()) / f"barnabas-{os.getuid()}" / name
    return directory


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
    for tries_left in reversed(range(_TRIES)):
        try:
            subprocess.run(
                copy, cwd=libraries, check=True, capture_output=True, text=True, timeout=_PATIENCE
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            if tries_left:
                time.sleep(_PAUSE)
                continue
            first = str(error.stdout or error.stderr or error).strip().splitlines()[:1]
            what = libraries.parent.name
            raise PrerequisiteMissing(f"Maven cannot fetch the jars of {what}: {first}") from error
        return


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
