"""
The page that is the map of the code names files that are there.
"""

from __future__ import annotations

import re
import tomllib

from tests.support.compiled import FOLDERS, ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_every_file_of_the_page_is_there() -> None:
    named = set(re.findall(r"`((?:\w+/)+\w+\.py)`", PAGE))
    sources = {
        source.relative_to(ROOT).as_posix()
        for folder in (*FOLDERS, "tests")
        for source in (ROOT / folder).rglob("*.py")
    }

    assert len(named) > 15
    assert not [name for name in named if not any(f"/{s}".endswith(f"/{name}") for s in sources)]


def test_every_room_is_on_the_page() -> None:
    """
    In the order in which the import contracts have them.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    rooms = {
        contract["name"].rpartition(" ")[2]: [
            room.strip() for layer in contract["layers"] for room in layer.split("|")
        ]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["name"].startswith("rooms of ")
    }
    assert {"engine", "server", "pipeline"} == set(rooms)
    for package, layers in (("storage", rooms["engine"]), *rooms.items()):
        if package == "engine":
            continue
        table = PAGE[PAGE.index(f"| rooms of `{package}`") :].split("\n\n", 1)[0]
        named = re.findall(r"`(\w+)`", table.split("\n", 2)[2].replace("``", ""))
        rows = [room for room in named if (ROOT / package / "barnabas" / package / room).exists()]
        assert rows == sorted(rows, key=layers.index)
        packages = {
            path.parent.name
            for path in (ROOT / package / "barnabas" / package).glob("*/__init__.py")
        }
        assert packages <= set(rows)
