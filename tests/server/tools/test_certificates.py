from __future__ import annotations

import asyncio
import os
import ssl
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import pytest

from barnabas.server.cli import main
from barnabas.server.tools.certificates import authority
from tests.support.server import running


def issue(folder: Path, hosts: Sequence[str] = (), clients: Sequence[str] = ()) -> list[Path]:
    return authority.issue(folder, hosts, clients, 30)


async def handshake(folder: Path, port: int, client: Path | None, host: str = "localhost") -> None:
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    if client is not None:
        context.load_cert_chain(client)
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname=host
    )
    writer.close()
    assert reader is not None


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "broker.example"])
async def test_broker_and_clients_trust_the_certificates(tmp_path: Path, host: str) -> None:
    issue(tmp_path, hosts=["broker.example"], clients=["alice"])
    options = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(tmp_path / "broker.pem"),
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": str(tmp_path / "ca.pem"),
        "ssl_client_auth": "required",
    }
    async with running(**options) as broker:
        await handshake(tmp_path, broker.port, tmp_path / "alice.pem", host)
        with pytest.raises(ssl.SSLError):
            await handshake(tmp_path, broker.port, tmp_path / "alice.pem", "other.example")


def test_keys_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    for path in issue(tmp_path, clients=["alice"]):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o644 if path.name == "ca.pem" else 0o600), path


@pytest.mark.parametrize("name", ["ca-key.pem", "ca.pem", "broker.pem"])
def test_full_disk_names_the_file_and_leaves_no_half_of_an_authority(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    opened = os.fdopen

    def full(descriptor: int, mode: str) -> IO[bytes]:
        if Path(os.readlink(f"/proc/self/fd/{descriptor}")).name != name:
            return opened(descriptor, mode)
        os.close(descriptor)
        return open("/dev/full", mode, buffering=0)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdopen", full)
        assert main(["certificates", "--output", str(tmp_path)]) == 1
    assert f"barnabas: {tmp_path / name}: No space left on device\n" == capsys.readouterr().err
    assert not (tmp_path / name).exists()
    assert main(["certificates", "--output", str(tmp_path)]) == 0


def test_second_run_adds_a_client_of_the_same_authority(tmp_path: Path) -> None:
    first = issue(tmp_path)
    before = {path: path.read_bytes() for path in first}
    assert issue(tmp_path, clients=["bob"]) == [tmp_path / "bob.pem"]
    assert {path: path.read_bytes() for path in first} == before


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--days", "0"], 2, "--days is from 1 to 36500, not 0"),
        (["--client", "a/b"], 1, "--client 'a/b' cannot be the name of a file"),
        (["--client", "broker"], 1, "--client 'broker' cannot be the name of a file"),
        (["--client", "x" * 65], 1, "cannot be in a certificate"),
        (["--host", "münchen"], 1, "cannot be in a certificate"),
        ([], 1, "broker.pem exists; move it away to issue another one"),
        (["--client", "there"], 1, "there.pem exists; move it away to issue another one"),
    ],
)
def test_refusal_leaves_every_file_as_it_was(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    message: str,
) -> None:
    if "--host" not in arguments:
        issue(tmp_path, clients=["there"])
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert main(["certificates", "--output", str(tmp_path), *arguments]) == status
    assert message in capsys.readouterr().err
    if before:
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_half_an_authority_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    issue(tmp_path)
    (tmp_path / "ca-key.pem").unlink()
    assert main(["certificates", "--output", str(tmp_path), "--client", "bob"]) == 1
    assert "ca-key.pem is missing" in capsys.readouterr().err
