"""
The machine and the versions that a run was made with.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import confluent_kafka

from barnabas.protocol.records import record as records
from benchmarks.procfs import busy_cores
from tests.support.apache_kafka import VERSION

LOOK_S: Final = 2.0
"""
How long to look whether anything else runs.
"""


def machine(directory: Path) -> dict[str, str]:
    """
    What has to be said beside a figure.

    Args:
        directory: where the brokers write.
    """
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "file system": _file_system(directory),
        "busy before": f"{busy_cores(LOOK_S):.2f} cores",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "uvloop": _version("uvloop"),
        "inner loops": "plain Python" if str(records.__file__).endswith(".py") else "compiled",
        "Barnabas": _version("barnabas") + _commit(),
        "Apache Kafka": VERSION,
        "Java": _java(),
        "librdkafka": confluent_kafka.libversion()[0],
    }


def _processor() -> str:
    found = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.processor() or platform.machine()


def _file_system(directory: Path) -> str:
    """
    Its type, by the longest mount point above *directory*.
    """
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    place = directory.resolve()
    return max(
        ((point, kind) for point, kind in mounts if place.is_relative_to(point)),
        key=lambda mount: len(mount[0]),
    )[1]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _commit() -> str:
    """
    The commit of a checkout.
    """
    here = Path(__file__).parent
    command = ["git", "-C", str(here), "describe", "--always", "--dirty"]
    if shutil.which("git") is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f" ({done.stdout.strip()})" if done.returncode == 0 else ""


def _java() -> str:
    if shutil.which("java") is None:
        return "none"
    done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "([^"]+)"', done.stderr)
    return found[1] if found else "unknown"
