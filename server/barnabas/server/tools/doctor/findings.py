"""
What a check has found.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """
    How much a finding matters.
    """

    OK = "ok"
    ADVICE = "advice"
    """The broker works, and would work better or safer."""
    PROBLEM = "problem"
    """The broker does not start, or loses data."""


class Finding(NamedTuple):
    """
    A fact about one subject, and what to do about it.
    """

    level: Level
    subject: str
    fact: str
    remedy: str = ""
    """Empty where there is nothing to do."""


def ok(subject: str, fact: str) -> Finding:
    return Finding(Level.OK, subject, fact)


def advice(subject: str, fact: str, remedy: str) -> Finding:
    return Finding(Level.ADVICE, subject, fact, remedy)


def problem(subject: str, fact: str, remedy: str) -> Finding:
    return Finding(Level.PROBLEM, subject, fact, remedy)
