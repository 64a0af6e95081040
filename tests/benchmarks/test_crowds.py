from __future__ import annotations

from contextlib import nullcontext

import pytest

from benchmarks import crowds
from benchmarks.crowds import Figures, Healthy, MiB, measure
from tests.support.broker_process import Barnabas


def test_line_of_a_crowd_has_ratios_and_memory() -> None:
    figures = Figures("idle", 0.957, 1.2, 1.03, 61 * MiB, -MiB // 2)

    expected = (
        "idle         rate x0.96  p99 x1.20  processor x1.03  memory +61.0 MiB, afterwards -0.5 MiB"
    )
    assert expected == str(figures)


def test_crowd_measurements_are_compared_in_pairs_with_the_largest_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    Each pair is a measurement alone and one beside the crowd.
    """
    alone = Healthy(100, 1, 1)
    measured = iter([alone, Healthy(90, 2, 1), alone, Healthy(50, 3, 2)])
    resident = iter([10 * MiB, 50 * MiB, 20 * MiB, 20 * MiB, 30 * MiB, 19 * MiB])
    monkeypatch.setattr(crowds, "healthy", lambda *_: next(measured))
    monkeypatch.setattr(crowds, "resident_bytes", lambda _pid: next(resident))
    monkeypatch.setattr(crowds, "SETTLED_S", 0)
    monkeypatch.setattr(crowds, "GONE_S", 0)
    monkeypatch.setattr(crowds, "beside", lambda _name, _port: nullcontext())
    broker = object.__new__(Barnabas)
    monkeypatch.setattr(Barnabas, "pid", 1)
    monkeypatch.setattr(Barnabas, "port", 2, raising=False)

    figures = measure(broker, "idle", 2, 1.0)

    assert Figures("idle", 0.7, 2.5, 1.5, 40 * MiB, 10 * MiB) == figures
