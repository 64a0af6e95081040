"""
The areas of the product, and drawing mutations from them by a seed.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from tests.mutations.mutation import Mutation, find_mutations

ROOT: Final = Path(__file__).parent.parent.parent

PACKAGES: Final = ("protocol", "storage", "coordination", "server", "pipeline")
"""The folders with code that is mutated."""


class Area(NamedTuple):
    """
    A part of the product.

    Attributes:
        share: its part of the mutations that are drawn from all areas, in hundreds of 300.
        without: folders and files in *folders* that belong to another area.
    """

    share: int
    folders: tuple[str, ...]
    without: tuple[str, ...] = ()


_SERVER: Final = "server/barnabas/server"
_SHELLS: Final = tuple(
    f"{_SERVER}/{name}"
    for name in (
        "coordinator_runtime",
        "coordinators.py",
        "groups",
        "share",
        "topics",
        "transactions",
    )
)
"""The modules of the server that run the coordinators."""

AREAS: Final = {
    "storage": Area(120, ("storage", "protocol")),
    "coordination": Area(80, ("coordination", *_SHELLS)),
    "server": Area(60, ("server",), without=_SHELLS),
    "pipeline": Area(40, ("pipeline",)),
}

_ALL: Final = sum(area.share for area in AREAS.values())


def draw(area: str, seed: int, count: int) -> list[Mutation]:
    """
    Draw an area's share of *count* mutations. Each operator has the same chance.
    """
    chance = random.Random(f"{seed}/{area}")
    by_operator: dict[str, list[Mutation]] = {}
    for mutation in mutations_of(modules(area)):
        by_operator.setdefault(mutation.operator, []).append(mutation)
    drawn: list[Mutation] = []
    while by_operator and len(drawn) < count * AREAS[area].share // _ALL:
        operator = chance.choice(sorted(by_operator))
        left = by_operator[operator]
        mutation = left.pop(chance.randrange(len(left)))
        if not left:
            del by_operator[operator]
        if _compiles(mutation):
            drawn.append(mutation)
    return drawn


def mutations_of(paths: Iterable[str]) -> list[Mutation]:
    return [mutation for path in paths for mutation in find_mutations(path, ROOT)]


def named(names: Iterable[str]) -> dict[str, Mutation]:
    """
    Find mutations by their names. A function that has changed may no longer have them.
    """
    wanted = set(names)
    paths = sorted({path_of(name) for name in wanted})
    found = mutations_of(path for path in paths if (ROOT / path).exists())
    return {mutation.name: mutation for mutation in found if mutation.name in wanted}


def path_of(name: str) -> str:
    return name.partition("::")[0]


def area_of(path: str) -> str:
    return next(name for name in AREAS if _holds(name, path))


def modules(area: str) -> list[str]:
    """
    The paths of an area's modules, in order.
    """
    return [
        path
        for folder in AREAS[area].folders
        for path in _python_files(ROOT / folder)
        if _holds(area, path)
    ]


def _python_files(place: Path) -> list[str]:
    files = [place] if place.suffix == ".py" else place.rglob("*.py")
    return sorted(file.relative_to(ROOT).as_posix() for file in files)


def _holds(area: str, path: str) -> bool:
    def is_below(folders: tuple[str, ...]) -> bool:
        return any(path == folder or path.startswith(f"{folder}/") for folder in folders)

    return is_below(AREAS[area].folders) and not is_below(AREAS[area].without)


def _compiles(mutation: Mutation) -> bool:
    # The value of a pattern takes no parentheses, for example.
    try:
        ast.parse(mutation.apply((ROOT / mutation.path).read_bytes()))
    except SyntaxError:
        return False
    return True
