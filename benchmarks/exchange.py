"""
Load at the level of frames: the program ``exchange.c``, which sends one request again and again.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.programs import Program
from benchmarks.wire import FollowingFetch


@dataclass(frozen=True, slots=True)
class Exchanged:
    """
    What came of it.

    Attributes:
        acknowledged: percentiles of the time from when a request was due to its answer, in ms.
        consumed: the same, until another connection had read its records; empty if none did.
    """

    seconds: float
    acknowledged: Mapping[str, float]
    consumed: Mapping[str, float]


class Exchanger:
    """
    Runs the program, which is compiled into *directory* first.
    """

    name: Final = "own frames"

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._program = Program("exchange", directory)
        self._files = itertools.count(1)

    def exchange(
        self,
        port: int,
        request: bytes,
        count: int,
        *,
        error_at: int = -1,
        connections: int = 1,
        under_way: int = 1,
        rate: int = 0,
        skip: int = 0,
        follow: FollowingFetch | None = None,
        records: int = 1,
    ) -> Exchanged:
        """
        Send *request* so many times, and wait for all answers.

        Args:
            error_at: where in an answer two bytes have to be 0.
            under_way: how many requests a connection may have unanswered.
            rate: requests a second, each sent when it is due; 0 sends one for each answer.
            skip: how many of the first requests count for no percentile.
            follow: what another connection reads meanwhile.
            records: how many records the request has.

        Raises:
            Unavailable: there is no compiler.
            SubprocessError: the broker answered with an error, or not at all.
        """
        numbers = {
            "port": port,
            "count": count,
            "error_at": error_at,
            "connections": connections,
            "under_way": under_way,
            "rate": rate,
            "skip": skip,
            "records": records,
        }
        files = {"request": request}
        if follow is not None:
            files["follow"] = follow.request
            numbers |= {
                "offset_at": follow.offset_at,
                "records_at": follow.records_at,
                "first": follow.first_offset,
            }
        return self._run(numbers, files)

    def _run(self, numbers: Mapping[str, int], files: Mapping[str, bytes]) -> Exchanged:
        arguments = [f"{name}={number}" for name, number in numbers.items()]
        for name, content in files.items():
            path = self._directory / f"{name}-{next(self._files)}"
            path.write_bytes(content)
            arguments.append(f"{name}={path}")
        found = json.loads(self._program.output(*arguments))
        return Exchanged(found["seconds"], found["acknowledged"], found.get("consumed", {}))
