"""
The page that is the map of the code names files that are there.
"""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.support.compiled import FOLDERS, ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_every_file_on_the_architecture_page_exists() -> None:
    named = set(re.findall(r"`((?:\w+/)+\w+\.py)`", PAGE))
    sources = {
        source.relative_to(ROOT).as_posix()
        for folder in (*FOLDERS, "testing", "tests")
        for source in (ROOT / folder).rglob("*.py")
    }

    assert len(named) > 15
    assert not [name for name in named if not any(f"/{s}".endswith(f"/{name}") for s in sources)]


CONTRACTS = {
    "testing": "rooms of the testing package",
    "protocol": "rooms of the protocol",
    "storage": "rooms of the storage engine",
    "coordination": "rooms of coordination",
    "server": "rooms of the server",
    "pipeline": "rooms of the pipeline",
}


@pytest.mark.parametrize("package", CONTRACTS)
def test_every_package_is_on_the_architecture_page(package: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (layers,) = (
        contract["layers"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["name"] == CONTRACTS[package]
    )
    order = [room.strip() for layer in layers for room in layer.split("|")]
    folder = ROOT / package / "barnabas" / package
    rooms = {path.parent.name for path in folder.glob("*/__init__.py")}

    table = PAGE[PAGE.index(f"| rooms of `{package}`") :].split("\n\n", 1)[0]
    first_cells = [row.split("|")[1] for row in table.splitlines()[2:]]
    named = [room for cell in first_cells for room in re.findall(r"`(\w+)`", cell)]

    assert rooms <= set(named)
    assert [*map(order.index, named)] == sorted(map(order.index, named))
