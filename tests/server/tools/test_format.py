from __future__ import annotations

import hashlib
import hmac
import io
from pathlib import Path

import pytest

from barnabas.protocol.internal_topics.metadata_records import UserScramCredentialRecord
from barnabas.server.cli import main
from barnabas.server.cluster.formatting import read_bootstrap
from barnabas.server.tools.format import InvalidScram, parse_scram
from barnabas.storage.fs.disk import DiskFiles
from tests.support.broker_process import Barnabas
from tests.support.sasl_client import SaslClient

ALICE = "SCRAM-SHA-256=[name=alice,password=wonder land]"


def users(directory: Path) -> list[str]:
    return [
        record.name
        for record, _ in read_bootstrap(directory, DiskFiles())
        if isinstance(record, UserScramCredentialRecord)
    ]


def test_formatted_user_can_connect_from_the_first_start(tmp_path: Path) -> None:
    assert 0 == main(["format", "--data-dir", str(tmp_path / "data"), "--add-scram", ALICE])
    broker = Barnabas(
        tmp_path,
        settings={"sasl.enabled.mechanisms": "SCRAM-SHA-256"},
        secured=["SASL_PLAINTEXT"],
    )
    try:
        for _ in range(2):
            broker.start()
            with SaslClient(broker.ports["SASL_PLAINTEXT"]) as client:
                assert 0 == client.handshake("SCRAM-SHA-256")[0]
                assert 0 == client.scram("alice", "wonder land")[0]
            broker.stop()
    finally:
        broker.close()


def test_formatted_directory_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = ["--data-dir", str(tmp_path)]
    assert 0 == main(["format", *directory, "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-S", ALICE])
    assert (
        f"Formatted {tmp_path} for cluster AAAAAAAAAAAAAAAAAAAAAQ, with the users alice\n"
        == capsys.readouterr().out
    )

    assert 1 == main(["format", *directory])
    assert "is formatted already; --ignore-formatted leaves it" in capsys.readouterr().err
    assert 0 == main(["format", *directory, "-g", "-S", "SCRAM-SHA-256=[name=bob,password=b]"])
    assert "no user was added" in capsys.readouterr().err
    assert 0 == main(["format", *directory, "--ignore-formatted"])
    assert ["alice"] == users(tmp_path)


def test_users_are_read_from_a_file_or_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "users"
    file.write_text(f"{ALICE}\n\nSCRAM-SHA-512=[name=bob,password=b]\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("SCRAM-SHA-512=[name=carol,password=c]\n"))
    data = tmp_path / "data"

    arguments = ["--data-dir", str(data), "-S", f"@{file}", "-S", "@-"]
    assert 0 == main(["format", *arguments])

    assert ["alice", "bob", "carol"] == users(data)
    assert 2 == main(["format", "--data-dir", str(tmp_path / "other"), "-S", f"@{tmp_path}/none"])
    assert "users cannot be read from" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_invalid_option_formats_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["format", "--data-dir", str(tmp_path / "new"), "-S", "alice:secret"])
    assert not (tmp_path / "new").exists()
    said = capsys.readouterr().err
    assert "must look like SCRAM-SHA-512=[name=alice,password=secret]" in said
    assert 2 == main(["format", "--set", "no.such=1"])
    assert 1 == main(["format", "--data-dir", "/proc/nowhere"])


def test_scram_credential_matches_the_password() -> None:
    made = parse_scram('SCRAM-SHA-512=[name="a,b",password="x=y, z",iterations=8192,salt=c2FsdA==]')

    salted = hashlib.pbkdf2_hmac("sha512", b"x=y, z", b"salt", 8192)
    key = hmac.digest(salted, b"Client Key", "sha512")
    assert ("a,b", 2, b"salt", 8192) == (made.name, made.mechanism, made.salt, made.iterations)
    assert hashlib.sha512(key).digest() == made.stored_key
    assert hmac.digest(salted, b"Server Key", "sha512") == made.server_key


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("PLAIN=[name=a,password=secret]", "there is no mechanism PLAIN"),
        ("SCRAM-SHA-256=[name=a]", "needs a password or a saltedpassword"),
        ("SCRAM-SHA-256=[password=secret]", "Username must not be empty"),
        ("SCRAM-SHA-256=[name=a,password=secret,iterations=1]", "Too few iterations"),
        ("SCRAM-SHA-256=[name=a,password=secret,iterations=many]", "are a number"),
        ("SCRAM-SHA-256=[name=a,password=secret,iterations=20000]", "Too many iterations"),
        ("SCRAM-SHA-256=[name=a,password=secret,salt=?]", "are base64"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=c2FsdA==]", "needs its salt"),
        ("SCRAM-SHA-256=[name=a,name=b,password=secret]", "name is there twice"),
        ("SCRAM-SHA-256=[user=a,password=secret]", "each as key=value"),
    ],
)
def test_malformed_user_is_refused_without_revealing_its_password(text: str, reason: str) -> None:
    with pytest.raises(InvalidScram, match=reason) as refused:
        parse_scram(text)

    assert "secret" not in str(refused.value)
