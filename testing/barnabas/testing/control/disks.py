"""
The disk in memory: it fails, is slow, and rots.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from barnabas.server.http.guard import Refused
from barnabas.server.http.json_api import DONE, Answer, Nothing, Operation
from barnabas.storage.config.option_values import did_you_mean
from barnabas.testing.control.control import Control
from barnabas.testing.hosts.embedded import DATA

Action: TypeAlias = Literal[
    "create",
    "list",
    "look",
    "make directory",
    "map",
    "open",
    "read",
    "remove",
    "rename",
    "sync",
    "sync directory",
    "truncate",
    "write",
]

MOST_DELAY_S: Final = 60
"""
For each operation of the disk: a start has hundreds.
"""


def _syncs() -> list[Action]:
    return ["sync"]


@dataclass(frozen=True, slots=True)
class DiskFailure:
    """
    Which operation of the disk fails, and how.
    """

    at: int = 0
    error: str = "EIO"
    only: list[Action] = field(default_factory=list)
    under: str | None = None
    forever: bool = False
    written: int = 0


@dataclass(frozen=True, slots=True)
class DiskDelay:
    """
    How long operations of the disk take.
    """

    seconds: float
    only: list[Action] = field(default_factory=_syncs)


@dataclass(frozen=True, slots=True)
class Rot:
    """
    Which file rots.
    """

    pattern: str = "*.log"
    seed: int = 0


def fail_disk(control: Control, given: DiskFailure) -> Answer:
    number = getattr(errno, given.error, None)
    if not isinstance(number, int):
        names = errno.errorcode.values()
        raise Refused(400, f"there is no error {given.error}{did_you_mean(given.error, names)}")
    control.expect_disk().fail(
        given.at,
        errno=number,
        only=frozenset(given.only),
        under=None if given.under is None else DATA / given.under,
        forever=given.forever,
        written=given.written,
    )
    return DONE


def delay_disk(control: Control, given: DiskDelay) -> Answer:
    if not 0 <= given.seconds <= MOST_DELAY_S:
        raise Refused(400, f"seconds is from 0 to {MOST_DELAY_S}, not {given.seconds}")
    control.expect_disk().delay(given.seconds, only=frozenset(given.only))
    return DONE


def rot_disk(control: Control, given: Rot) -> Answer:
    try:
        rot = control.expect_disk().rot(given.pattern, seed=given.seed)
    except FileNotFoundError:
        raise Refused(404, f"no file that matches {given.pattern} has any bytes") from None
    return Answer({"path": str(rot.path), "position": rot.position, "bit": rot.bit})


def heal_disk(control: Control, _: Nothing) -> Answer:
    control.expect_disk().heal()
    return DONE


OPERATIONS: Final = (
    Operation("POST", "/v1/disk/fail", "fails at an operation", fail_disk, DiskFailure),
    Operation("POST", "/v1/disk/delay", "makes operations slow", delay_disk, DiskDelay),
    Operation("POST", "/v1/disk/rot", "turns over a bit of a file", rot_disk, Rot),
    Operation("POST", "/v1/disk/heal", "fails no more, and is quick", heal_disk),
)
