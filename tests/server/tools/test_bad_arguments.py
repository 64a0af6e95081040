"""
Every command with every kind of bad argument ends with a sentence that names it.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from barnabas.server import process
from barnabas.server.broker import Broker
from barnabas.server.cli import _COMMANDS, main
from barnabas.server.config import BrokerConfig
from barnabas.server.config.sources import load_settings
from barnabas.storage.config.option_values import ConfigError
from tests.support import commands
from tests.support.commands import BARNABAS

VALUES: Final = (
    *("absent", "empty", "foreign", "text", "binary", "zero", "device"),
    *("nothing", "blank", "url", "long", "null"),
)
DATA_DIR, CONFIG, FOLDER, ADDRESS = "data-dir", "config", "folder", "address"
UNUSABLE: Final[Mapping[str, tuple[str, ...]]] = {
    DATA_DIR: ("text", "binary", "zero", "device", "nothing", "blank", "url", "long", "null"),
    CONFIG: ("absent", "empty", "foreign", "binary", "nothing", "blank", "url", "long", "null"),
    FOLDER: ("text", "binary", "zero", "device", "nothing", "blank", "url", "long", "null"),
    ADDRESS: tuple(value for value in VALUES if value != "nothing"),
}
"""Values that no command can use, by the kind of its argument."""

COMMANDS: Final = [
    (DATA_DIR, "doctor --data-dir @"),
    (CONFIG, "doctor --config @"),
    (DATA_DIR, "format --data-dir @"),
    (CONFIG, "format --config @"),
    (CONFIG, "healthcheck --config @"),
    (ADDRESS, "healthcheck --bootstrap-server @"),
    (DATA_DIR, "explain --data-dir @ orders"),
    (CONFIG, "explain --config @ orders"),
    (DATA_DIR, "verify @"),
    (FOLDER, "certificates --output @"),
    (DATA_DIR, "backup @ --to copy"),
    (DATA_DIR, "graduate --data-dir @ --node h --output out"),
    (CONFIG, "graduate --config @ --node h --output out"),
    (DATA_DIR, "spark report --dry-run --data-dir @"),
    (CONFIG, "topics list --command-config @"),
    (ADDRESS, "topics list --bootstrap-server @"),
    (ADDRESS, "groups list --bootstrap-server @"),
    (ADDRESS, "consume orders --bootstrap-server @"),
    (ADDRESS, "produce orders --bootstrap-server @"),
    (DATA_DIR, "serve --set listeners=PLAINTEXT://127.0.0.1:0 --data-dir @"),
    (DATA_DIR, "serve --set listeners=PLAINTEXT://127.0.0.1:0 --read-only --data-dir @"),
    (CONFIG, "serve --config @"),
]
IN_OWN_PROCESS: Final = ("serve", "spark")


@pytest.fixture
def values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for folder in ("empty", "foreign/notes", "work"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "foreign/readme.txt").write_text("hello")
    (tmp_path / "text").write_text("some words = and others\n")
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 10)
    (tmp_path / "zero").write_bytes(b"")
    # What a command creates by accident stays away from the values.
    monkeypatch.chdir(tmp_path / "work")
    paths = {name: str(tmp_path / name) for name in VALUES[:6]}
    return paths | {
        "device": "/dev/null",
        "nothing": "",
        "blank": " ",
        "url": "http://example.invalid/x",
        "long": "a" * 5000,
        "null": "a\0b",
    }


def run(
    command: str, value: str, capsys: pytest.CaptureFixture[str] | None = None
) -> tuple[int, str]:
    """
    The exit status of a command and all that it prints.
    """
    arguments = [value if word == "@" else word for word in command.split()]
    if arguments[0] in IN_OWN_PROCESS:
        if "\0" in value:
            pytest.skip("a process has no such argument")
        ended = commands.run(*BARNABAS, *arguments)
        return ended.returncode, ended.stdout + ended.stderr
    try:
        status = main(arguments)
    except SystemExit as exited:
        status = int(exited.code or 0)
    assert capsys is not None, "only a process of its own needs none"
    printed = capsys.readouterr()
    return status, printed.out + printed.err


@pytest.mark.parametrize(("kind", "command"), COMMANDS, ids=[each[1] for each in COMMANDS])
def test_unusable_argument_is_named_in_a_sentence(
    kind: str, command: str, values: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    for name in UNUSABLE[kind]:
        if name == "null" and command.startswith(IN_OWN_PROCESS):
            continue
        value = values[name]
        status, printed = run(command, value, capsys)
        assert status in (1, 2), (name, printed)
        assert "Traceback" not in printed, (name, printed)
        assert "Errno" not in printed, (name, printed)
        is_named = value.strip()[:40].replace("\0", "") in printed.replace("\0", "")
        assert is_named or re.search(r"path is (empty|too long)|null character", printed), name


@pytest.mark.parametrize(
    ("value", "command"),
    [
        (value, command)
        for value, (kind, command) in itertools.product(("absent", "empty", "foreign"), COMMANDS)
        if kind == DATA_DIR and not command.startswith(("serve --set", "spark"))
    ],
)
def test_directory_that_is_no_log_directory_causes_no_traceback(
    value: str, command: str, values: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, printed = run(command, values[value], capsys)
    assert status in (0, 1, 2)
    assert "Traceback" not in printed
    assert not status or values[value] in printed


@pytest.mark.parametrize("value", VALUES)
def test_dump_log_says_in_words_that_a_file_cannot_be_dumped(
    value: str,
    values: dict[str, str],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    given = values[value]
    if value == "absent":
        given += "/00000000000000000000.log"
    status = main(["dump-log", "--files", given])
    printed = capfd.readouterr().err
    assert "Traceback" not in printed
    if value == "absent":
        assert (status, printed.splitlines()[-1]) == (1, f"barnabas: {given} does not exist")


def test_unknown_argument_prints_the_usage_of_its_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for command in _COMMANDS:
        if command == "dump-log":
            continue
        words = {
            "topics": ["topics", "create", "x"],
            "groups": ["groups", "list"],
            "spark": ["spark", "archive", "--to", "x"],
            "certificates": ["certificates", "--output", "o"],
            "completion": ["completion", "bash"],
            "graduate": ["graduate", "--node", "h", "--output", "o"],
            "backup": ["backup", "d", "--to", "t"],
            "verify": ["verify", "d"],
            "explain": ["explain", "d"],
            "produce": ["produce", "x"],
            "consume": ["consume", "x"],
        }.get(command, [command])
        with pytest.raises(SystemExit) as exited:
            main([*words, "--nope"])
        printed = capsys.readouterr().err
        assert exited.value.code == 2
        assert printed.startswith(f"usage: barnabas {command}"), printed
        assert "unrecognized arguments: --nope" in printed


def test_every_command_is_enumerated() -> None:
    others = {"dump-log", "options", "completion"}
    assert {command.split()[0] for _, command in COMMANDS} | others == {*_COMMANDS}


def test_file_that_this_user_may_not_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = tmp_path / "secret.properties"
    secret.write_text("listeners=PLAINTEXT://:9092")
    secret.chmod(0)
    if os.access(secret, os.R_OK):
        pytest.skip("this user may read every file")
    assert main(["doctor", "--config", str(secret)]) == 2
    assert f"{secret} cannot be read: Permission denied" in capsys.readouterr().err


def test_zookeeper_options_of_an_old_file_are_no_longer_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "server.properties"
    old.write_text(f"zookeeper.connect=localhost:2181\nlog.dirs={tmp_path}/data\n")
    assert main(["doctor", "--config", str(old)]) in (0, 1)
    assert "ZooKeeper is no longer needed: remove it" in capsys.readouterr().out


WRONG: Final[Mapping[str, str]] = {
    "path": "/tmp/x",
    "url": "http://example.invalid/x",
    "negative": "-1",
    "empty": "",
    "zero": "0",
    "fraction": "0.5",
    "no number": "nan",
    "huge": "99999999999999999999",
    "largest": str(2**63 - 1),
    "year 10000": "253402300800000",
    "comma": ",",
    "pair": "host:99999",
    "null": "a\0b",
    "letter": "é",
    "byte": "\udcff",
}
JUDGED_AT_START: Final = {
    "barnabas.http.listener",
    "log.cleaner.io.buffer.load.factor",
    "max.connections.per.ip.overrides",
}
"""Options whose values are known to be wrong only by the part that uses them."""
CHOOSE_THE_PLACE: Final = {
    *("listeners", "log.dir", "log.dirs", "metadata.log.dir", "barnabas.read.only"),
}


@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG)
def test_value_is_refused_before_anything_is_written_or_the_broker_starts_with_it(
    value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    place = [f"log.dirs={data}", "listeners=PLAINTEXT://127.0.0.1:0"]
    accepted: list[str] = []
    for name in sorted(BrokerConfig.options().keys() - JUDGED_AT_START - CHOOSE_THE_PLACE):
        assignment = f"{name}={value}"
        try:
            load_settings(assignments=[*place, assignment]).config()
        except ConfigError:
            assert main(["serve", "--data-dir", str(data), "--set", assignment]) == 2
            printed = capsys.readouterr().err
            assert name in printed
            assert _is_shown(value, printed)
            assert printed.count("\n") == 1
            assert not data.exists()
            continue
        with suppress(ConfigError):  # one that does not fit the others that are accepted
            load_settings(assignments=[*place, *accepted, assignment]).config()
            accepted.append(assignment)

    gc.enable()  # serve has disabled it
    config = load_settings(assignments=[*place, *accepted]).config()
    asyncio.run(_start_and_stop(Broker(config)))


def _is_shown(value: str, printed: str) -> bool:
    """
    Whether a message has a value: as it is, as a number, or the empty part of a list.
    """
    shown = {value.encode(errors="backslashreplace").decode().lower()}
    with suppress(ValueError):
        shown.add(str(float(value)))
    if value == ",":
        shown |= {"value  for", "must not be empty"}
    return any(each in printed.lower() for each in shown)


async def _start_and_stop(broker: Broker) -> None:
    try:
        await broker.start()
    finally:
        await broker.stop()


WITH_TLS: Final = "listeners=SSL://127.0.0.1:0"
WITH_SASL: Final = "listeners=SASL_PLAINTEXT://127.0.0.1:0"
PLAIN: Final = "sasl.enabled.mechanisms=PLAIN"
BEARER: Final = "sasl.enabled.mechanisms=OAUTHBEARER barnabas.jaas.file=jaas"
OWN: Final = "listener.name.sasl_plaintext."
JAAS: Final = """KafkaServer {
  org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;
};"""


@pytest.mark.parametrize(
    ("listeners", "assignment"),
    [
        ("", "barnabas.http.listener=/tmp/x"),
        ("", "barnabas.http.listener=http://example.invalid/x"),
        ("", "barnabas.http.listener=127.0.0.1:99999"),
        ("", "log.cleaner.io.buffer.load.factor=-1.0"),
        ("", "log.cleaner.io.buffer.load.factor=nan"),
        ("", "max.connections.per.ip.overrides=nohost.invalid:1"),
        (WITH_TLS, "ssl.keystore.location=/nope"),
        (WITH_TLS, "ssl.enabled.protocols="),
        (WITH_TLS, "listener.name.ssl.ssl.client.auth=perhaps"),
        (WITH_SASL, "sasl.enabled.mechanisms=GSSAPI"),
        (f"{WITH_SASL} {PLAIN}", "barnabas.jaas.file=/nope"),
        (f"{WITH_SASL} {PLAIN}", f"{OWN}plain.sasl.jaas.config=nonsense"),
        (f"{WITH_SASL} {PLAIN}", f"{OWN}sasl.server.max.receive.size=-1"),
        (f"{WITH_SASL} {BEARER}", "sasl.server.callback.handler.class=nonsense"),
    ],
)
def test_value_that_only_the_start_can_judge_is_refused_before_anything_is_written(
    listeners: str,
    assignment: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(process, "stop_on_signals", _stopped)
    Path("jaas").write_text(JAAS)
    data = tmp_path / "data"
    before = (listeners or "listeners=PLAINTEXT://127.0.0.1:0").split()
    settings = load_settings(assignments=[f"log.dirs={data}", *before, assignment])

    assert process.run(settings.config(), settings) == 2
    (error,) = (each for each in caplog.records if each.levelname == "ERROR")
    name, _, value = assignment.partition("=")
    assert name.removeprefix(OWN).removeprefix("listener.name.ssl.") in error.message
    assert value.partition(":1")[0] in error.message
    assert not data.exists()


def _stopped() -> asyncio.Event:
    """
    A broker that starts by mistake stops at once.
    """
    stop = asyncio.Event()
    stop.set()
    return stop


@pytest.mark.parametrize("control", ["", " --test-control 0"])
def test_serve_with_an_option_that_only_the_start_can_judge_exits_with_2(
    control: str, values: dict[str, str]
) -> None:
    command = f"serve --data-dir @ --set barnabas.http.listener=/tmp/x{control}"
    status, printed = run(f"{command} --set listeners=PLAINTEXT://127.0.0.1:0", values["absent"])

    assert status == 2
    assert printed.count("an address looks like 127.0.0.1:8099, or 8099 alone") == 1
    assert not Path(values["absent"]).exists()


def test_format_refuses_an_id_of_a_cluster_that_no_file_can_have(
    values: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, printed = run("format --data-dir @ -t é", values["absent"], capsys)

    assert status == 2
    assert "é for configuration barnabas.cluster.id: write visible characters" in printed
    assert not Path(values["absent"]).exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("retention.ms", "retention.ms, an option of a topic"),
        ("log.retention.ms", "log.retention.ms, an option of the broker"),
        ("zookeeper.connect", "zookeeper.connect has no effect: ZooKeeper is no longer needed"),
    ],
)
def test_options_explains_one_option(
    name: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["options", name]) == 0
    assert expected in capsys.readouterr().out


def test_options_of_a_topic_change_at_any_time(capsys: pytest.CaptureFixture[str]) -> None:
    main(["options", "retention.ms"])
    assert "set      while the broker runs" in capsys.readouterr().out


def test_options_are_a_table_on_a_terminal_and_markdown_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def printed(*more: str) -> list[str]:
        assert main(["options", *more]) == 0
        return capsys.readouterr().out.splitlines()

    assert "# Options" == printed()[0]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "# Options" == printed("--markdown")[0]
    table = printed()
    assert ["The node and its metadata", "OPTION"] == [table[0], table[1].split()[0]]
    rows = [line.split() for line in table]
    assert ["retention.ms", "long", "604800000"] in rows
    assert {*BrokerConfig.options()} <= {row[0] for row in rows if row}
    assert max(map(len, table)) <= 120


def test_unknown_option_without_a_near_one_names_the_list(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["options", "nope"]) == 2
    assert "Unknown option nope; barnabas options lists all" in capsys.readouterr().err


def test_options_suggests_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["options", "retention.msec"]) == 2
    assert "Unknown option retention.msec; did you mean" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["serve --set listeners=PLAINTEXT://127.0.0.1:0", "doctor"])
def test_wrong_directory_is_named_and_left_alone(
    command: str, values: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = Path(values["foreign"])
    before = sorted(foreign.rglob("*"))
    status, printed = run(f"{command} --data-dir @", str(foreign), capsys)
    assert status == 1
    assert "'notes' is not in the form of topic-partition" in printed
    assert sorted(foreign.rglob("*")) == before


def test_misspelt_option_names_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["consume", "orders", "--form=-2"])
    assert "unrecognized arguments: --form=-2; did you mean --from?" in capsys.readouterr().err
