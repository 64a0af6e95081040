"""
CRC-32C, the checksum of record batches and of snapshots of producers.

The package ``crc32c`` looks up its own version when it is imported, and loads fifty modules for
that, a tenth of all that a broker loads. Its extension module needs none of them, so that is found
and loaded without the package around it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any, Final

_PACKAGE: Final = "crc32c"
_EXTENSION: Final = "crc32c._crc32c"


def _load() -> Any:
    package = PathFinder.find_spec(_PACKAGE)
    folders = None if package is None else package.submodule_search_locations
    spec = PathFinder.find_spec(_EXTENSION, folders)
    if spec is None or spec.loader is None:
        import crc32c  # noqa: PLC0415  # a package of another shape

        return crc32c
    extension = module_from_spec(spec)
    spec.loader.exec_module(extension)
    return extension


crc32c: Final[Callable[..., int]] = _load().crc32c
"""
``crc32c(data, value=0)``: the checksum of *data*, behind that of what came before it.
"""
