from __future__ import annotations

import pytest

from tests.client.terminal.conftest import Terminal


@pytest.fixture
def read(terminal: Terminal) -> Terminal:
    """
    A topic ``read`` with two partitions of ten records, and a group ``reader`` at offset 4 of both.
    """
    terminal("topics create read --partitions 2 --if-not-exists")
    (topic,) = terminal.json("topics describe read")
    if not topic["partitions"][0]["end_offset"]:
        for partition in (0, 1):
            terminal(f"produce read --partition {partition}", given="x\n" * 10)
    terminal("groups reset-offsets reader --topic read --to 4 --execute")
    return terminal


def offsets(terminal: Terminal, group: str) -> dict[int, tuple[int, int, int]]:
    described = terminal.json(f"groups describe {group}")
    return {
        each["partition"]: (each["committed"], each["end"], each["lag"])
        for each in described["offsets"]
    }


def test_describe_prints_committed_offsets_and_lag(read: Terminal) -> None:
    assert offsets(read, "reader") == {0: (4, 10, 6), 1: (4, 10, 6)}
    lines = read("groups describe reader").splitlines()
    assert lines[:2] == ["Group        reader", "Type         classic, Empty"]
    assert lines[-2:] == [
        "read-0             4   10    6  -",
        "read-1             4   10    6  -",
    ]


def test_list_filters_by_type_and_state(read: Terminal) -> None:
    assert "reader" in read("groups list")
    assert [each["group_id"] for each in read.json("groups list --type classic --state Empty")]
    assert read.json("groups list --type share") == []


def test_reset_without_execute_changes_nothing(read: Terminal) -> None:
    planned = read.json("groups reset-offsets reader --to beginning")
    assert [(each["committed"], each["new"]) for each in planned] == [(4, 0), (4, 0)]
    assert "--execute applies these offsets" in read.errors
    assert offsets(read, "reader") == {0: (4, 10, 6), 1: (4, 10, 6)}


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("--to beginning", (0, 0)),
        ("--to end", (10, 10)),
        ("--to -3", (7, 7)),
        ("--to 99", (10, 10)),
        ("--to 2020-01-01", (0, 0)),
        ("--shift-by -3", (1, 1)),
        ("--shift-by 99", (10, 10)),
        ("--topic read:1 --to 6", (4, 6)),
    ],
)
def test_reset_moves_offsets_within_the_log(
    read: Terminal, to: str, expected: tuple[int, int]
) -> None:
    read(f"groups reset-offsets reader {to} --execute")
    found = offsets(read, "reader")
    assert (found[0][0], found[1][0]) == expected


def test_deleted_group_is_gone(read: Terminal) -> None:
    assert read("groups delete reader") == "Deleted group reader.\n"
    read("groups delete reader", status=1)
    assert "group reader: GROUP_ID_NOT_FOUND." in read.errors


@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        ("groups describe nobody", 1, "group nobody: GROUP_ID_NOT_FOUND."),
        ("groups reset-offsets nobody --to end", 1, "group nobody: GROUP_ID_NOT_FOUND."),
        ("groups reset-offsets reader --topic read:x --to end", 2, "write TOPIC or TOPIC:0,1,2"),
        ("groups reset-offsets reader --topic read:5 --to end", 2, "partition 5 does not exist"),
        ("groups reset-offsets new --topic read --shift-by 1", 2, "read-0 has no committed offset"),
    ],
)
def test_refusal_names_the_group_or_the_partition(
    read: Terminal, command: str, status: int, message: str
) -> None:
    read(command, status=status)
    assert message in read.errors
