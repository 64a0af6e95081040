"""
The jars of Apache Kafka, fetched once from Maven Central.

``KAFKA_VERSION`` names another version of the brokers; clients and tools stay at 4.3.1.

Whoever has them already says where in ``KAFKA_CLASSPATH`` (a class path as ``java -cp`` takes it);
otherwise Maven copies them into a cache directory of the user, 55 MB, in about ten seconds.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from tests.support.maven import PrerequisiteMissing, cache, jars

VERSION: Final = "4.3.1"
BROKER_VERSION: Final = os.environ.get("KAFKA_VERSION", VERSION)

QUICK: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
"""
Options of a virtual machine that compiles little: what a test runs is over before more pays.
"""

_ARTIFACTS: Final = ("org.apache.kafka:kafka_2.13", "org.apache.kafka:kafka-tools")
_LOGGING: Final = {"org.apache.logging.log4j:log4j-slf4j-impl": "2.24.3"}


def require_java() -> None:
    """
    Raises:
        PrerequisiteMissing: there is no Java to run, or no compiler.
    """
    for program in ("java", "javac"):
        if shutil.which(program) is None:
            raise PrerequisiteMissing(f"no {program} on the path (a JDK of 17 or newer is needed)")


def class_path(version: str = VERSION) -> str:
    """
    The class path of Apache Kafka's broker, clients and tools.

    Raises:
        PrerequisiteMissing: there is no Java, or Maven is missing or could not fetch the jars.
    """
    require_java()
    given = os.environ.get("KAFKA_CLASSPATH")
    if given:
        return given
    artifacts = dict.fromkeys(_ARTIFACTS, version) | _LOGGING
    return f"{jars(cache_directory(version), 'libs', artifacts)}/*"


def library(name: str) -> str:
    """
    The class path of one more library of Apache Kafka, such as ``kafka-streams``, with all that it
    needs; it goes beside `class_path`.

    Raises:
        PrerequisiteMissing: there is no Java, or Maven is missing or could not fetch the jars.
    """
    require_java()
    return f"{jars(cache_directory(), name, {f'org.apache.kafka:{name}': VERSION})}/*"


def cache_directory(version: str = VERSION) -> Path:
    """
    Where the jars are, and what else is made once.
    """
    return cache(f"apache-kafka-{version}")
