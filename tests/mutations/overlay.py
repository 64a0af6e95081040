"""
A mutated module for the processes of one run, without a change of the checkout.

The overlay is a folder that precedes the others in ``PYTHONPATH``. It holds the package of the
module: the folders that lead to it, and symbolic links to everything beside these. Brokers that a
test starts inherit the variable.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tests.mutations.drawing import ROOT
from tests.mutations.mutation import Mutation

_CACHE: Final = "__pycache__"
_SOURCES: Final = ("protocol", "storage", "server", "pipeline", "testing")


def python_path(overlay: Path | None = None) -> str:
    """
    ``PYTHONPATH`` for a run of the checkout, or of it with the modules in *overlay*.
    """
    first = [] if overlay is None else [overlay]
    return os.pathsep.join(map(str, [*first, *(ROOT / source for source in _SOURCES)]))


def write_overlay(overlay: Path, mutation: Mutation) -> None:
    source, namespace, *folders, module = Path(mutation.path).parts
    real, place = ROOT / source / namespace, overlay / namespace
    place.mkdir(parents=True)
    for folder in folders:
        real, place = real / folder, place / folder
        _link_all_but(next_part(mutation.path, real), real, place)
    (place / module).write_bytes(mutation.apply((real / module).read_bytes()))


def next_part(path: str, folder: Path) -> str:
    """
    The name in *folder* on the way to *path*.
    """
    return (ROOT / path).relative_to(folder).parts[0]


def _link_all_but(name: str, real: Path, place: Path) -> None:
    place.mkdir()
    for entry in real.iterdir():
        if entry.name not in (name, _CACHE):
            (place / entry.name).symlink_to(entry)
    cached = real / _CACHE
    if cached.exists():
        # A link has the times of its file, so that what is compiled is as good here.
        (place / _CACHE).mkdir()
        for entry in cached.iterdir():
            if not entry.name.startswith(f"{Path(name).stem}."):
                (place / _CACHE / entry.name).symlink_to(entry)
