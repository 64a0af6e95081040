"""
The image of this project, built on a Docker engine.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Final

# What tests start they stop themselves: the watchdog of testcontainers is not needed, and its image
# cannot be had everywhere. The library reads this when it is imported.
os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")

import docker
import kafka  # type: ignore[import-untyped]  # the library has no type hints

from tests.support.commands import output_of
from tests.support.maven import PrerequisiteMissing, alone, cache

ROOT: Final = Path(__file__).parents[2]
BASE: Final = "python:3.13-slim"
NAME: Final = "barnabas-test"
PLAIN_NAME: Final = "barnabas-test-plain"
OPTIMIZATION: Final = "0"
"""
Of the compiler: it takes a minute less, and is tested the same.
"""
_BUILD: Final = re.compile("^docker build .*$", re.MULTILINE)
CONFLUENT_TAG: Final = "8.0.0"
"""
Some containers for Confluent's image read in the tag what the image can do.
"""


def docker_engine() -> docker.DockerClient:
    """
    Raises:
        PrerequisiteMissing: there is no Docker engine.
    """
    try:
        client = docker.from_env()
        client.ping()
    except docker.errors.DockerException as error:
        raise PrerequisiteMissing(f"no Docker engine: {str(error)[:100]}") from error
    return client


def build_image(engine: docker.DockerClient, *, is_compiled: bool = True) -> str:
    """
    Build the image by the documented command, and return its name. A second process that asks
    meanwhile waits, and finds all layers there.

    Args:
        is_compiled: whether the image has compiled modules, which takes minutes.

    Raises:
        AssertionError: it cannot be built.
        PrerequisiteMissing: there is no docker command.
    """
    if shutil.which("docker") is None:
        raise PrerequisiteMissing("there is no docker command here")
    if not is_compiled:
        *words, context = build_command(PLAIN_NAME)
        output_of(*words, "--build-arg", "COMPILE=0", context, cwd=ROOT, seconds=600)
        return f"{PLAIN_NAME}:latest"
    with alone(cache("image")):
        output_of(*build_command(NAME), cwd=ROOT, seconds=600)
    engine.images.get(NAME).tag(NAME, CONFLUENT_TAG)
    return f"{NAME}:latest"


def build_command(name: str) -> list[str]:
    """
    ``docker build`` as the README and ``docs/containers.md`` have it, with another *name* of the
    image, a compiler that optimizes less, and the network of the host.
    """
    pages = ("README.md", "docs/containers.md")
    lines = [line for page in pages for line in _BUILD.findall((ROOT / page).read_text())]
    shown = [shlex.split(line, comments=True) for line in lines]
    assert shown == [["docker", "build", "-t", "barnabas", "."]] * 2
    *words, context = [name if word == "barnabas" else word for word in shown[0]]
    return [*words, "--network", "host", "--build-arg", f"OPTIMIZATION={OPTIMIZATION}", context]


def with_kafka_python(
    engine: docker.DockerClient, network: str, program: str, *arguments: str
) -> str:
    """
    What a Python program prints that has kafka-python, in a container in that *network*.
    """
    library = Path(kafka.__file__).parent
    printed: bytes = engine.containers.run(
        BASE,
        ["python", "-W", "ignore", "-c", program, *arguments],
        environment={"PYTHONPATH": "/library"},
        volumes={str(library): {"bind": "/library/kafka", "mode": "ro"}},
        network_mode=network,
        remove=True,
    )
    return printed.decode().strip()
