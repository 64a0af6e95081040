"""
What is swept: each field of each request whose size a client chooses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from barnabas.protocol.apis import MODULES
from barnabas.protocol.codec.schema import Array, Field, Kind, Struct, Type, fields
from barnabas.protocol.messages import REQUESTS
from barnabas.server.requests.registry import SERVED

Path = tuple[str, ...]
SIZED: Final = (Kind.STRING, Kind.BYTES, Kind.RECORDS)


class Case(NamedTuple):
    """
    A field of a version of a request.
    """

    request: Any
    version: int
    path: Path
    field: Field

    @property
    def api(self) -> str:
        return MODULES[self.request.api.key]

    @property
    def is_of_entries(self) -> bool:
        """
        Whether the field is an array of structs or of numbers: it can have very many entries.
        """
        kind = self.field.type
        return isinstance(kind, Array) and kind.element is not Kind.STRING

    def __str__(self) -> str:
        return f"{self.api}-v{self.version}-{'.'.join(self.path)}"


def cases_of(api: str, *, all_versions: bool) -> list[Case]:
    """
    The fields of an API's request, each in the highest version that has it.

    Args:
        all_versions: each in the lowest version, too, where strings and arrays are encoded
            otherwise.
    """
    key = next(key for key, name in MODULES.items() if name == api)
    request = REQUESTS[key]
    found: dict[Path, list[Case]] = {}
    for version in request.api.versions:
        for path, field in _sized(request, version):
            found.setdefault(path, []).append(Case(request, version, path, field))
    highest = [those[-1] for those in found.values()]
    lowest = [those[0] for those in found.values() if all_versions and len(those) > 1]
    return highest + lowest


def swept_apis() -> list[str]:
    """
    The APIs with such a field.
    """
    names = [MODULES[key] for key in sorted(SERVED)]
    return [name for name in names if cases_of(name, all_versions=False)]


def _sized(cls: type, version: int) -> Iterator[tuple[Path, Field]]:
    for field in fields(cls):
        if not field.is_in(version):
            continue
        kind: Type = field.type
        if kind in SIZED or isinstance(kind, Array):
            yield (field.name,), field
        if isinstance(kind, Array):
            kind = kind.element
        if isinstance(kind, Struct):
            for path, inner in _sized(kind.cls, version):
                yield (field.name, *path), inner
