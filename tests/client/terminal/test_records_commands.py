from __future__ import annotations

import base64
import io
import json
import os
import random
import signal
from typing import Any

import pytest

from barnabas.client.producer import Producer
from barnabas.client.terminal import consume, produce
from tests.client.terminal.conftest import Terminal


def test_lines_become_values(terminal: Terminal) -> None:
    terminal("topics create lines")
    written = terminal("produce lines", given="one\n\ntwo words\nlast without end")
    assert written == "lines-0: 4 records, offsets 0 to 3\n"
    assert terminal("consume lines --values") == "one\n\ntwo words\nlast without end\n"


def test_separator_splits_key_and_value(terminal: Terminal) -> None:
    terminal("topics create keyed")
    terminal("produce keyed --key-separator :", given="a:1\n:2\nb:3:4\n")
    assert [(each["key"], each["value"]) for each in terminal.consumed("keyed")] == [
        ("a", "1"),
        ("", "2"),
        ("b", "3:4"),
    ]


def test_table_escapes_control_characters_and_shows_headers(terminal: Terminal) -> None:
    terminal("topics create shown")
    record = {"key": "k\x1b[2J", "value": None, "headers": {"h": "v"}, "timestamp": 0}
    terminal("produce shown --json", given=json.dumps(record))
    title, line = terminal("consume shown").splitlines()
    assert title.split() == ["PARTITION", "OFFSET", "TIME", "KEY", "VALUE"]
    assert line.split() == ["shown-0", "0", "1970-01-01T00:00:00Z", "k\\x1b[2J", "-", "h=v"]


def test_columns_of_records_are_below_their_titles(terminal: Terminal) -> None:
    terminal("topics create t")
    terminal("produce t --key k", given="v\n")
    title, line = terminal("consume t").splitlines()
    starts = [title.index(word) for word in ("PARTITION", "TIME", "KEY", "VALUE")]
    assert line[title.index("OFFSET") + len("OFFSET") - 1] == "0"
    assert [line[start] for start in starts] == ["t", "2", "k", "v"]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("seed", range(3))
def test_random_records_come_back_as_written(
    terminal: Terminal, seed: int, compression: str
) -> None:
    topic = f"random-{compression}-{seed}"
    terminal(f"topics create {topic} --partitions 3")
    chance = random.Random(seed)
    expected: dict[int, list[dict[str, Any]]] = {0: [], 1: [], 2: []}
    lines = []
    for _ in range(200):
        record = _random_record(chance)
        lines.append(json.dumps(record))
        expected[record["partition"]].append(record)
    terminal(f"produce {topic} --json --compression {compression}", given="\n".join(lines))
    found = terminal.consumed(topic)
    for partition, records in expected.items():
        mine = [each for each in found if each["partition"] == partition]
        assert [each["offset"] for each in mine] == list(range(len(records)))
        assert [_without_place(each) for each in mine] == [_without_place(each) for each in records]


def _random_record(chance: random.Random) -> dict[str, Any]:
    record: dict[str, Any] = {
        "partition": chance.randrange(3),
        "timestamp": chance.randrange(1 << 40),
        **_random_bytes(chance, "key"),
        **_random_bytes(chance, "value"),
    }
    if chance.random() < 0.3:
        record["headers"] = [
            {"name": chance.choice("abä"), **_random_bytes(chance, "value")}
            for _ in range(chance.randrange(1, 4))
        ]
    return record


def _random_bytes(chance: random.Random, name: str) -> dict[str, Any]:
    kind = chance.randrange(4)
    if kind == 0:
        return {name: None}
    if kind == 1:
        return {f"{name}_base64": base64.b64encode(b"\xff" + chance.randbytes(9)).decode()}
    return {name: "".join(chance.choices("aé€😀\n\t\0", k=chance.randrange(20 * kind)))}


def _without_place(record: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in record.items()
        if name not in ("topic", "offset", "timestamp_type")
    }


def test_output_of_consume_is_input_of_produce(terminal: Terminal) -> None:
    terminal("topics create from")
    terminal("topics create to")
    chance = random.Random(7)
    lines = [json.dumps({**_random_record(chance), "partition": 0}) for _ in range(50)]
    terminal("produce from --json", given="\n".join(lines))
    terminal("produce to --json", given=terminal("consume from --json"))
    first, second = terminal.consumed("from"), terminal.consumed("to")
    assert [{**each, "topic": ""} for each in first] == [{**each, "topic": ""} for each in second]


@pytest.fixture
def ten(terminal: Terminal) -> Terminal:
    """
    A topic ``ten`` with one record a minute from the year 2026 on.
    """
    if "ten" not in terminal("topics list"):
        terminal("topics create ten --partitions 1")
        first = 1_767_225_600_000
        lines = [json.dumps({"value": str(n), "timestamp": first + n * 60_000}) for n in range(10)]
        terminal("produce ten --json", given="\n".join(lines))
    return terminal


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ("", range(10)),
        ("--from beginning --until end", range(10)),
        ("--from earliest -n 3", range(3)),
        ("--from end", range(0)),
        ("--from 4", range(4, 10)),
        ("--from 4 --until 6", range(4, 6)),
        ("--from -2", range(8, 10)),
        ("--from -99", range(10)),
        ("--from 99", range(0)),
        ("--from 2026-01-01T00:03:00Z", range(3, 10)),
        ("--from 2026-01-01T00:02:30Z --until 2026-01-01T00:05:00Z", range(3, 5)),
        ("--until 2026-01-01T00:01:00Z", range(1)),
        ("--from 2027-01-01", range(0)),
        ("--from 1h", range(0)),
        ("--from committed:reader", range(7, 10)),
        ("--partition 0 --max-records 1", range(1)),
    ],
)
def test_consume_starts_and_stops_at_places(ten: Terminal, places: str, expected: range) -> None:
    ten("groups reset-offsets reader --topic ten --to 7 --execute")
    found = ten(f"consume ten --values {places}")
    assert found.split() == [str(number) for number in expected]


@pytest.mark.parametrize(
    ("command", "given", "status", "message"),
    [
        ("consume absent", "", 1, "topic absent: UNKNOWN_TOPIC_OR_PARTITION. It does not exist"),
        ("consume ten --from soon", "", 2, "'soon' is no place in a partition; write beginning"),
        ("consume ten --from 99999-01-01", "", 2, "is no place in a partition"),
        ("consume ten --partition 7", "", 2, "partition 7 does not exist; topic ten has 1"),
        ("consume ten --max-records 0", "", 2, "--max-records 0: write a number of at least 1"),
        ("consume ten --follow --until end", "", 2, "--follow has no end: leave out --until"),
        ("consume ten --from committed:nobody", "", 1, "group nobody: GROUP_ID_NOT_FOUND."),
        (
            "produce absent",
            "x\n",
            1,
            "topic absent: UNKNOWN_TOPIC_OR_PARTITION. It does not exist",
        ),
        ("produce ten --partition 3", "x\n", 1, "partition 3 does not exist; topic ten has 1"),
        ("produce ten --json", "{]\n", 2, "line 1 is not JSON: "),
        ("produce ten --json", "[]\n", 2, "line 1 is not a JSON object"),
        ("produce ten --json", '{"valeu": 1}\n', 2, "line 1 has the unknown member 'valeu'"),
        ("produce ten --json", '{"partition": "0"}\n', 2, "partition is a whole number, not '0'"),
        ("produce ten --json", '{"timestamp": -5}\n', 2, "timestamp is in ms since 1970, not -5"),
        ("produce ten --json", '{"value_base64": "%"}\n', 2, "value_base64 is not base64"),
        ("produce ten --json", '{"headers": [1]}\n', 2, "headers are an object, or a list of"),
        (
            "produce ten --key-separator :",
            "abc\n",
            2,
            "line 1 has no ':' between",
        ),
        ("produce ten --header a", "abc\n", 2, "--header a: write NAME=VALUE"),
        ("produce ten /does/not/exist", "", 1, "/does/not/exist: No such file or directory"),
    ],
)
def test_bad_input_is_named_with_its_line(
    ten: Terminal, command: str, given: str, status: int, message: str
) -> None:
    ten(command, given=given, status=status)
    assert message in ten.errors


def test_records_before_a_bad_line_are_written(terminal: Terminal) -> None:
    terminal("topics create partly")
    out = terminal("produce partly --json", given='{"value": "good"}\nbad\n', status=2)
    assert out == "partly-0: 1 record, offset 0\n"
    assert "line 2 is not JSON" in terminal.errors
    assert "; 1 record before it is written, and nothing after it" in terminal.errors
    assert terminal("consume partly --values") == "good\n"


def test_bad_first_line_writes_nothing(terminal: Terminal) -> None:
    terminal("topics create nothing")
    assert terminal("produce nothing --json", given="bad\n", status=2) == ""
    assert terminal.errors.endswith("; nothing is written\n")


def test_line_longer_than_a_request_is_refused_before_it_is_read_to_its_end(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(produce, "_MOST_BYTES", 5)
    terminal("topics create endless")
    terminal("produce endless", given="12345\n", status=2)
    terminal("produce endless", given="1234\n123456789", status=2)
    assert "line 2 is longer than 100 MiB" in terminal.errors
    assert terminal("consume endless --values") == "1234\n"


def test_refused_records_are_not_sent_again_at_the_end(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal("topics create refused --config max.message.bytes=1KiB")
    flushes = []
    flush = Producer.flush

    def counted(producer: Producer) -> None:
        flushes.append(1)
        flush(producer)

    monkeypatch.setattr(Producer, "flush", counted)
    terminal("produce refused", given=("x" * 2000 + "\n") * 5000, status=1)
    assert flushes == [1]


def test_record_larger_than_the_topic_allows_is_refused_by_its_partition(
    terminal: Terminal,
) -> None:
    terminal("topics create small --config max.message.bytes=1KiB")
    terminal("produce small", given="x" * 2000 + "\n", status=1)
    assert "small-0 refuses records: MESSAGE_TOO_LARGE." in terminal.errors


class Signalled(io.BytesIO):
    """
    An input at whose end a signal comes, while a command waits for more.
    """

    def __init__(self, data: bytes, number: signal.Signals) -> None:
        super().__init__(data)
        self._number = number

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if not line:
            os.kill(os.getpid(), self._number)
        return line


SIGNALS = pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)


@SIGNALS
def test_signal_ends_the_input_and_what_is_written_is_printed(
    terminal: Terminal, number: signal.Signals, status: int
) -> None:
    topic, handler = f"ended-{status}", signal.getsignal(number)
    terminal(f"topics create {topic}")

    out = terminal(f"produce {topic}", given=Signalled(b"1\n2\n", number), status=status)

    assert out == f"{topic}-0: 2 records, offsets 0 to 1\n"
    assert "2 records before it are written, and nothing after it" in terminal.errors
    assert terminal(f"consume {topic} --values") == "1\n2\n"
    assert signal.getsignal(number) is handler


@SIGNALS
def test_signal_does_not_interrupt_a_write(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, status: int
) -> None:
    topic, send = f"whole-{status}", Producer.send
    terminal(f"topics create {topic}")

    def signalled_send(self: Producer, *arguments: Any, **more: Any) -> None:
        if b"1" in arguments:
            os.kill(os.getpid(), number)
        send(self, *arguments, **more)

    monkeypatch.setattr(Producer, "send", signalled_send)
    out = terminal(f"produce {topic}", given="1\n2\n", status=status)

    assert out == f"{topic}-0: 1 record, offset 0\n"


def test_second_signal_ends_a_write_that_hangs(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal("topics create hanging")

    def flush(_producer: Producer) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("the second signal was ignored")

    monkeypatch.setattr(Producer, "flush", flush)
    terminal("produce hanging", given=Signalled(b"1\n", signal.SIGINT), status=143)


@SIGNALS
def test_signal_ends_a_read_after_whole_lines(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, status: int
) -> None:
    topic, print_value, printed = f"read-{status}", consume._print_value, []
    terminal(f"topics create {topic}")
    terminal(f"produce {topic}", given="1\n2\n3\n")

    def signalled_print(consumed: Any) -> None:
        print_value(consumed)
        printed.append(consumed)
        if len(printed) == 2:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(consume, "_print_value", signalled_print)

    assert terminal(f"consume {topic} --values", status=status) == "1\n2\n"
    assert "an interruption ended the read after " in terminal.errors
