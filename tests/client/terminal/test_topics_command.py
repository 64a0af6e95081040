from __future__ import annotations

import pytest

from tests.client.terminal.conftest import Terminal


def test_create_uses_units_and_describe_prints_them_as_kafka_stores_them(
    terminal: Terminal,
) -> None:
    created = terminal(
        "topics create units --partitions 3 --config retention.ms=7d --config segment.bytes=1MiB"
    )
    assert created == "Created topic units with 3 partitions and 1 replica of each.\n"
    (topic,) = terminal.json("topics describe units")
    assert topic["configs"] == {"retention.ms": "604800000", "segment.bytes": "1048576"}
    assert [each["partition"] for each in topic["partitions"]] == [0, 1, 2]


def test_describe_prints_a_table_of_partitions(terminal: Terminal) -> None:
    terminal("topics create table --partitions 2")
    terminal("produce table --partition 1", given="a\nb\n")
    assert terminal("topics describe table").splitlines() == [
        "Topic    table",
        "Configs  the defaults of the broker",
        "PARTITION  LEADER  REPLICAS  ISR  START  END",
        "        0       1  1         1        0    0",
        "        1       1  1         1        0    2",
    ]


def test_list_leaves_out_internal_topics_unless_asked(terminal: Terminal) -> None:
    terminal("topics create listed --partitions 2")
    terminal("groups reset-offsets internal --topic listed --to end --execute")
    names = [each["name"] for each in terminal.json("topics list")]
    assert "listed" in names
    assert "__consumer_offsets" not in names
    assert "__consumer_offsets" in terminal("topics list --internal")


def test_alter_sets_and_unsets_configs_and_adds_partitions(terminal: Terminal) -> None:
    terminal("topics create altered --config retention.ms=1h --config cleanup.policy=compact")
    terminal("topics alter altered --config retention.ms=2h --unset cleanup.policy --partitions 4")
    (topic,) = terminal.json("topics describe altered")
    assert topic["configs"] == {"retention.ms": "7200000"}
    assert len(topic["partitions"]) == 4


def test_deleted_topic_is_gone(terminal: Terminal) -> None:
    terminal("topics create gone")
    assert terminal("topics delete gone") == "Deleted topic gone.\n"
    terminal("topics delete gone", status=1)
    assert "topic gone: UNKNOWN_TOPIC_OR_PARTITION" in terminal.errors
    terminal("topics delete gone --if-exists")


@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        ("topics create taken", 1, "topic taken: TOPIC_ALREADY_EXISTS."),
        ("topics create a/b", 1, "topic a/b: INVALID_TOPIC_EXCEPTION."),
        ("topics create x --config retention.ms=seven", 1, "topic x: INVALID_CONFIG."),
        ("topics create x --config nonsense=1", 1, "topic x: INVALID_CONFIG."),
        ("topics create x --config retention.ms", 2, "--config retention.ms: write NAME=VALUE"),
        ("topics create x --config retention.ms=7GiB", 2, "GiB is not a unit of retention.ms"),
        ("topics create x --partitions 0", 1, "topic x: INVALID_PARTITIONS."),
        ("topics create x --replication-factor 3", 1, "topic x: INVALID_REPLICATION_FACTOR."),
        ("topics describe absent", 1, "topic absent: UNKNOWN_TOPIC_OR_PARTITION."),
        ("topics alter taken", 2, "nothing to alter: give --config, --unset or --partitions"),
        ("topics alter taken --partitions 1", 1, "topic taken: INVALID_PARTITIONS."),
        ("topics alter absent --config retention.ms=1", 1, "topic absent: UNKNOWN_TOPIC_OR"),
    ],
)
def test_refusal_names_the_topic_and_the_reason(
    terminal: Terminal, command: str, status: int, message: str
) -> None:
    terminal("topics create taken --if-not-exists")
    terminal(command, status=status)
    assert terminal.errors.startswith("barnabas: ")
    assert message in terminal.errors
