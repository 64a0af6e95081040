"""
The image: pip checks the hash of each package, and no example publishes a port without a password.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
_PIN = re.compile(r"^([\w.-]+)==(\S+)(.*)$")


def pins(name: str) -> dict[str, str]:
    """
    The version of each package of a file.

    Raises:
        AssertionError: a line is no pin, or a pin has no hash.
    """
    text = (DOCKER / name).read_text()
    joined = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", "")
    found = {}
    for line in joined.splitlines():
        pin, *hashes = re.split(r"\s+--hash=", line.strip())
        match = _PIN.match(pin)
        assert match, line
        assert hashes, f"{pin} has no hash"
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", each) for each in hashes)
        found[match[1].lower().replace("_", "-").replace(".", "-")] = match[2]
    return found


def wanted(name: str) -> list[str]:
    extras = PROJECT["project"]["optional-dependencies"]
    of_image = [*PROJECT["project"]["dependencies"], *extras["http"], *extras["security"]]
    if name == "requirements.txt":
        return of_image
    compiling = re.search(
        r"^NEEDED = (\[.*\])$", (ROOT / "hatch_build.py").read_text(), re.MULTILINE
    )
    assert compiling
    needed: list[str] = ast.literal_eval(compiling[1])
    return [*of_image, *PROJECT["build-system"]["requires"], *needed, "build"]


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-build.txt"])
def test_image_has_a_hash_for_each_package_that_the_project_needs(name: str) -> None:
    pinned = pins(name)
    for text in wanted(name):
        requirement = Requirement(text)
        version = pinned.get(requirement.name.lower().replace(".", "-"))
        assert version is not None, f"{requirement.name} is missing: see the head of {name}"
        assert requirement.specifier.contains(version), f"{requirement} is not {version}"


def test_image_is_built_and_run_with_the_same_packages() -> None:
    building = pins("requirements-build.txt")
    assert pins("requirements.txt").items() <= building.items()


def test_image_installs_nothing_without_a_hash() -> None:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    installs = re.findall(r"\bpip\b[^&\n]* install [^&\n]*", text)

    assert len(installs) == 3
    for install in installs:
        is_ours = "--no-deps /tmp/wheel/" in install
        assert is_ours or "--require-hashes" in install, install
    assert "--no-isolation" in text, "an isolated build would install packages of its own"


def test_plain_listener_of_compose_is_published_on_this_machine_alone() -> None:
    services = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]
    published = [port for service in services.values() for port in service.get("ports", ())]

    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


@pytest.mark.parametrize(
    "page", ["README.md", "docs/containers.md", "examples/README.md", "docs/testing.md"]
)
def test_commands_publish_ports_on_this_machine_alone(page: str) -> None:
    commands = re.findall(r"^docker run .*$", (ROOT / page).read_text(), re.MULTILINE)
    ports = [port for command in commands for port in re.findall(r" -p (\S+)", command)]

    assert all(port.startswith("127.0.0.1:") for port in ports), ports
