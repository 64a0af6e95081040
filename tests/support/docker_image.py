"""
The image of this project, built on a Docker engine.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

# What tests start they stop themselves: the watchdog of testcontainers is not needed, and its image
# cannot be had everywhere. The library reads this when it is imported.
os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")

import docker
import kafka  # type: ignore[import-untyped]  # the library has no type hints
from testcontainers.core.image import DockerImage

from tests.support.maven import PrerequisiteMissing, alone, cache

ROOT: Final = Path(__file__).parents[2]
BASE: Final = "python:3.13-slim"
NAME: Final = "barnabas-test"
OPTIMIZATION: Final = "0"
"""
Of the compiler: it takes a minute less, and is tested the same.
"""
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


def build_image(engine: docker.DockerClient) -> str:
    """
    Build the image that the Dockerfile describes, and return its name. A second process that asks
    meanwhile waits, and finds all layers there.

    Raises:
        AssertionError: it cannot be built.
    """
    built = DockerImage(
        path=ROOT,
        tag=f"{NAME}:latest",
        clean_up=False,
        network_mode="host",
        buildargs={"OPTIMIZATION": OPTIMIZATION},
    )
    with alone(cache("image")):
        try:
            built.build()
        except docker.errors.BuildError as error:
            lines = [
                str(line.get("stream", "")) for line in error.build_log if isinstance(line, dict)
            ]
            raise AssertionError("".join(lines)[-4000:]) from error
    engine.images.get(NAME).tag(NAME, CONFLUENT_TAG)
    return str(built)


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
