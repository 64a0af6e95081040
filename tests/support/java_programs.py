"""
Programs of ours in Java, compiled once.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from tests.support.apache_kafka import QUICK, VERSION, cache_directory, class_path, java
from tests.support.maven import alone

_PATIENCE: Final = 300
_OPTIONS: Final = (*(f"-J{option}" for option in QUICK), "-proc:none")


def compiled(source: Path, *, extra_class_path: str = "") -> str:
    """
    The directory with the classes of the program *source*, which is compiled if it is new: they
    stay in the cache directory of Apache Kafka's jars.

    Args:
        extra_class_path: what it needs beside these jars.

    Raises:
        PrerequisiteMissing: there is no Java, or Maven is missing or could not fetch the jars.
    """
    jars = class_path()
    path = f"{jars}:{extra_class_path}" if extra_class_path else jars
    programs = cache_directory() / "programs"
    name = f"{source.stem}-{sha256(source.read_bytes() + VERSION.encode()).hexdigest()[:16]}"
    classes = programs / name
    with alone(programs):
        if not classes.exists():
            fresh = Path(tempfile.mkdtemp(dir=programs))
            command = ["javac", *_OPTIONS, "-cp", path, "-d", str(fresh), str(source)]
            subprocess.run(command, check=True, timeout=_PATIENCE)
            fresh.rename(classes)
    return str(classes)


def run_program(
    source: Path,
    *arguments: str,
    lines: Iterable[str] = (),
    level: str = "warn",
    seconds: float = _PATIENCE,
    extra_class_path: str = "",
    environment: Mapping[str, str] | None = None,
) -> str:
    """
    The standard output of the program *source*, which has to succeed; *lines* are its input.

    Args:
        level: from which level on it logs.
        seconds: how long it may take.
        extra_class_path: what it needs beside Apache Kafka's jars.
        environment: variables beside those of this process.
    """
    classes = compiled(source, extra_class_path=extra_class_path)
    path = os.pathsep.join(filter(None, (classes, extra_class_path)))
    command = java(source.stem, *arguments, level=level, extra_class_path=path)
    done = subprocess.run(
        command,
        input="".join(lines),
        text=True,
        capture_output=True,
        timeout=seconds,
        check=False,
        env=os.environ | (environment or {}),
    )
    assert done.returncode == 0, f"{arguments}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout
