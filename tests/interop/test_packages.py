"""
The packages that a user installs: what is in them, and a record through the broker of one.
"""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.interop.clients.base import PATIENCE, NewRecord
from tests.interop.clients.kafka_python import KafkaPython
from tests.support.broker_process import answers, free_port, wait_for
from tests.support.wheel import environment, plain_wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plain_wheel(tmp_path_factory.mktemp("wheel"))


def test_a_wheel_has_the_packages_the_licence_and_no_tests(wheel: Path) -> None:
    """
    Their types too.
    """
    names = zipfile.ZipFile(wheel).namelist()
    packages = {name.split("/")[1] for name in names if name.startswith("barnabas/")}

    assert wheel.name.endswith("-py3-none-any.whl")
    assert {"protocol", "storage", "server", "pipeline"} <= packages
    assert {f"barnabas/{package}/py.typed" for package in packages} <= set(names)
    assert [] == [name for name in names if "/tests/" in name or name.startswith("tests")]
    assert 1 == sum(name.endswith("/licenses/LICENSE") for name in names)


def test_the_same_sources_make_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """
    Byte by byte, so that anybody can find out what is in a package that was downloaded.
    """
    again = plain_wheel(tmp_path)

    assert digest(wheel) == digest(again)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_an_installed_wheel_serves_a_record(wheel: Path, tmp_path: Path) -> None:
    """
    In a fresh environment, with nothing in it but what the wheel asks for.
    """
    barnabas = environment(tmp_path / "venv", str(wheel)) / "barnabas"
    says = subprocess.run(
        [barnabas, "--version"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    port = free_port()
    listeners = f"listeners=PLAINTEXT://127.0.0.1:{port}"
    broker = subprocess.Popen([barnabas, "serve", "--ephemeral", "--set", listeners], cwd=tmp_path)
    try:
        wait_for(lambda: answers(port), "the broker of the wheel", PATIENCE)
        client = KafkaPython()
        client.produce(f"127.0.0.1:{port}", "orders", [NewRecord(b"from a wheel")], "none")
        seen = client.read(f"127.0.0.1:{port}", "orders", 1, 1)
    finally:
        broker.terminate()
        broker.wait(PATIENCE)

    assert says.stdout.endswith(" (plain Python)\n")
    assert [b"from a wheel"] == [each.value for each in seen]
    assert 0 == broker.returncode
