from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.dump.findings import Findings
from barnabas.storage.dump.java_text import hash_order
from barnabas.storage.dump.options import OPTIONS, parse
from barnabas.storage.dump.usage import usage
from tests.support.dumping import KAFKAS, LOG, dump, dump_log

DATA = bytes(build_batch([SimpleRecord(1, b"\0\0\0\0\0\0\0\x07", b"\0\0\0\x05")]))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--files", "a"],
        ["--files=a"],
        ["-files", "a"],
        ["-files=a"],
        ["passed", "over", "--files", "a"],
        ["--files", "a", "--", "--nonsense"],
        ["--deep-iteration=yes", "--files", "a"],
    ],
)
def test_option_argument_is_parsed_in_every_notation(arguments: list[str]) -> None:
    assert ["a"] == parse(arguments).files


@pytest.mark.parametrize(
    ("text", "names"),
    [("a,b", ["a", "b"]), ("a, b", ["a", " b"]), (",a,,", ["", "a"]), (",", []), ("", [""])],
)
def test_files_are_separated_by_commas(text: str, names: list[str]) -> None:
    assert names == parse(["--files", text]).files


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--nonsense"], "UnrecognizedOptionException: nonsense is not a recognized option"),
        (["--file", "a"], "UnrecognizedOptionException: file is not a recognized option"),
        (["-xyz"], "UnrecognizedOptionException: x is not a recognized option"),
        (["--files"], "OptionMissingRequiredArgumentException: Option files requires an argument"),
        (
            ["--files", "a", "--files", "b"],
            "MultipleArgumentsForOptionException: Found multiple arguments for option files, but "
            "you asked for only one",
        ),
        (
            ["--max-bytes", "1k", "--files", LOG],
            "OptionArgumentConversionException: Cannot parse argument '1k' of option max-bytes",
        ),
        (
            ["--max-bytes", "2147483648", "--files", LOG],
            "OptionArgumentConversionException: Cannot parse argument '2147483648' of option "
            "max-bytes",
        ),
    ],
)
def test_wrong_options_are_refused_with_the_message_of_joptsimple(
    arguments: list[str], reason: str
) -> None:
    dumped = dump(*arguments)

    assert (1, f"{KAFKAS}joptsimple.{reason}\n") == (dumped.status, dumped.err)


def test_missing_files_option_prints_the_help() -> None:
    nothing, lacking, asked = dump(), dump("--deep-iteration"), dump("--help")

    assert 'Missing required argument "[files]"\n' + usage() == lacking.err
    assert nothing == asked
    assert nothing.err.endswith(usage())
    assert [(1, "")] * 3 == [run[:2] for run in (nothing, lacking, asked)]
    assert all(f"--{name}" in usage() for name in OPTIONS)


def test_decoder_option_without_a_class_uses_the_default_decoder() -> None:
    options = parse(["--value-decoder-class", "--files", "a"])

    assert options.print_contents
    assert options.text("value-decoder-class").endswith(".StringDecoder")


@pytest.mark.parametrize(
    ("name", "shown"), [("Long", "7"), ("Integer", "0"), ("Default", "0000000000000007")]
)
def test_decoder_class_decodes_keys_and_values(name: str, shown: str, tmp_path: Path) -> None:
    dumped = dump_log(
        tmp_path,
        DATA,
        *("--key-decoder-class", f"org.apache.kafka.tools.api.{name}Decoder"),
        *("--value-decoder-class", "org.apache.kafka.tools.api.IntegerDecoder"),
    )

    assert dumped.lines[1].endswith(f" key: {shown} payload: 5")


def test_decoder_errors_are_reported(tmp_path: Path) -> None:
    unknown = dump_log(tmp_path, DATA, "--key-decoder-class", "com.example.Mine")
    longs = dump_log(
        tmp_path, DATA, "--value-decoder-class", "org.apache.kafka.tools.api.LongDecoder"
    )

    assert f"{KAFKAS}java.lang.RuntimeException: Failed to load decoder class\n" == unknown.err
    assert f"Dumping {tmp_path / LOG}\n" == unknown.out
    assert f"{KAFKAS}java.nio.BufferUnderflowException\n" == longs.err
    assert longs.out.endswith(" headerKeys: []")


def test_file_names_decide_how_files_are_dumped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = build_batch([SimpleRecord(1, None, b"x")], base_offset=7)
    Path("00000000000000000007.log").write_bytes(data)

    odd = dump("--files", "a,.//7.log/x.y,")
    number = dump("--files", "x.log")
    deep = dump("--deep-iteration", "--files", ".//00000000000000000007.log")

    assert ["Dumping a", "Dumping ./7.log/x.y"] == odd.out.splitlines()
    assert "Ignoring unknown file a\nIgnoring unknown file ./7.log/x.y\n" == odd.err
    assert f'{KAFKAS}java.lang.NumberFormatException: For input string: "x"\n' == number.err
    assert f"Non-consecutive offsets in {tmp_path}/./00000000000000000007.log\n" in deep.err


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("bootstrap.checkpoint", "KRaft bootstrap snapshot"),
        ("00000000000000000042-0000000007.checkpoint", "Snapshot end offset: 42, epoch: 7"),
    ],
)
def test_snapshots_of_the_metadata_log_are_dumped(name: str, line: str, tmp_path: Path) -> None:
    dumped = dump_log(tmp_path, DATA, name=name)

    assert [f"Dumping {tmp_path / name}", line] == dumped.out.splitlines()[:2]


def test_metadata_snapshot_with_a_malformed_name_is_refused(tmp_path: Path) -> None:
    dumped = dump_log(tmp_path, DATA, name="7.checkpoint")

    assert (
        f"{KAFKAS}java.lang.StringIndexOutOfBoundsException: begin 0, end 20, length 12\n"
    ) == dumped.err


def test_unknown_format_is_refused(tmp_path: Path) -> None:
    dumped = dump_log(tmp_path, DATA, "--format", "xml")

    assert (1, "") == dumped[:2]
    assert dumped.err.endswith("xml is no format: there are text and json\n")


def test_version_option_prints_the_version_of_the_matching_kafka_tool() -> None:
    assert (0, "4.3.1\n", "") == dump("--version")


@pytest.mark.parametrize(
    "order",
    [
        [2, 4, 3, 0, 1],
        [10, 12, 8, 2, 6, 4, 3, 0, 11, 1, 9, 7, 5],
        [13, 12, 8, 2, 6, 0, 11, 1, 9, 5, 10, 4, 3, 7],
    ],
    ids=len,
)
def test_files_with_findings_are_in_the_order_of_javas_hash_map(order: list[int]) -> None:
    names = [f"/kafka/t-{number}/00000000000000000000.log" for number in range(len(order))]

    findings = Findings()
    for name in names:
        findings.gaps(name, {-1: 7})

    assert [names[number] for number in order] == hash_order(names)
    assert hash_order(names) == [finding.path for finding in findings.all()]


def test_later_finding_replaces_one_of_the_same_offset() -> None:
    """
    Where Kafka's tool uses maps keyed by offset, not for timestamps.
    """
    findings = Findings()
    for second in (1, 2):
        findings.index_mismatch("a", 5, second)
        findings.gaps("a", {5: second})
        findings.add("timestampMismatch", "a", 5, second)

    assert [
        ("indexMismatch", 5, 2),
        ("timestampMismatch", 5, 1),
        ("timestampMismatch", 5, 2),
        ("gap", 5, 2),
    ] == [(finding.kind, finding.first, finding.second) for finding in findings.all()]
