"""
Fingerprints of directories, to detect changes.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple


class Print(NamedTuple):
    is_file: bool
    size: int
    mode: int
    modified_ns: int
    sha256: str


def fingerprint(directory: Path) -> dict[str, Print]:
    found = {}
    for path in (directory, *sorted(directory.rglob("*"))):
        facts = path.stat()
        is_file = path.is_file()
        found[str(path.relative_to(directory))] = Print(
            is_file,
            facts.st_size if is_file else 0,
            facts.st_mode,
            facts.st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if is_file else "",
        )
    return found
