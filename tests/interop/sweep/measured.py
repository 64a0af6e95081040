"""
A broker whose longest turn and largest memory a test can ask for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.interop.sweep import turn_meter
from tests.interop.sweep.turn_meter import LONGEST
from tests.support.broker_process import Barnabas
from tests.support.checkers import findings

_FORGET_PEAK = "5"
"""
What ``clear_refs`` takes to let ``VmHWM`` begin again (see proc(5)).
"""


class MeasuredBroker(Barnabas):
    """
    A separate process, as it is seen by the system.
    """

    def __init__(self, directory: Path, **options: Any) -> None:
        # What the checkers look at takes memory and time.
        super().__init__(directory, environment={findings.VARIABLE: ""}, **options)
        directory.mkdir(parents=True, exist_ok=True)
        self._file = directory / "longest-turn"
        self._file.write_bytes(bytes(LONGEST.size))

    def command(self) -> list[str]:
        python, option, module, *arguments = super().command()
        assert (option, module) == ("-m", "barnabas.server")
        return [python, turn_meter.__file__, str(self._file), *arguments]

    def start_over(self) -> None:
        """
        Forget the longest turn and the largest memory so far.
        """
        with self._file.open("r+b") as file:
            file.write(bytes(LONGEST.size))
        Path(f"/proc/{self.pid}/clear_refs").write_text(_FORGET_PEAK)

    @property
    def longest_turn_s(self) -> float:
        (longest,) = LONGEST.unpack(self._file.read_bytes())
        return float(longest)

    @property
    def peak_bytes(self) -> int:
        """
        The most memory that the process has held since ``start_over``.
        """
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
        return int(peak) * 1024
