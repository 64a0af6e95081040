"""
Broken rules, on their way from a broker to the test that started it.

A broker in a process of its own cannot fail a test. It writes what it found to the folder that the
variable ``CHECKERS_OF_BARNABAS`` names, where the process of the test looks after each test.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

VARIABLE: Final = "CHECKERS_OF_BARNABAS"
"""
Not ``BARNABAS_...``: the broker warns of variables that look like its options and are none.
"""
BROKERS: Final = "brokers-"
FINDINGS: Final = "findings-"
SEPARATOR: Final = "\0"
MOST: Final = 20
"""
Findings of one broker that are kept: a rule that is broken once is often broken at each look.
"""

Found = list[str]

_captured: list[Found] = []


def report(finding: str) -> None:
    """
    Record that a rule is broken.
    """
    if _captured:
        _captured[-1].append(finding)
    else:
        _append(FINDINGS, f"{finding}{SEPARATOR}")


def count_broker() -> None:
    """
    Record that a broker is watched.
    """
    if not _captured:
        _append(BROKERS, ".")


@contextmanager
def captured() -> Iterator[Found]:
    """
    Collect what is reported by brokers of this process in the block; no test fails for it.
    """
    found: Found = []
    _captured.append(found)
    try:
        yield found
    finally:
        _captured.remove(found)


def collect() -> list[str]:
    """
    Take what brokers of this process and of those below have reported so far.
    """
    folder = os.environ.get(VARIABLE)
    if folder is None:
        return []
    found: list[str] = []
    for name in sorted(os.listdir(folder)):
        if name.startswith(FINDINGS):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                found += [text for text in file.read().split(SEPARATOR) if text]
            os.unlink(path)
    return found


def brokers() -> tuple[int, int]:
    """
    The number of brokers that were watched in this process, and in processes below it.
    """
    folder = os.environ[VARIABLE]
    sizes = {
        name: os.path.getsize(os.path.join(folder, name))
        for name in os.listdir(folder)
        if name.startswith(BROKERS)
    }
    here = sizes.pop(f"{BROKERS}{os.getpid()}", 0)
    return here, sum(sizes.values())


def _append(kind: str, text: str) -> None:
    folder = os.environ.get(VARIABLE)
    if folder is None:
        return
    with open(os.path.join(folder, f"{kind}{os.getpid()}"), "a", encoding="utf-8") as file:
        file.write(text)
