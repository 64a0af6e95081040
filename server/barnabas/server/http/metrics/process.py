"""
Memory, processor time and descriptors of the process, as Prometheus' clients name them, and what
it has read from disks and written, as Kafka does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

from barnabas.server.http.metrics import families
from barnabas.server.http.metrics.exposition import Blocks

_IO: Final = Path("/proc/self/io")


class ProcessFigures(NamedTuple):
    """
    Figures of the operating system about the process.
    """

    metrics: list[Metric]
    disk: Mapping[str, int]
    """The numbers of ``/proc/self/io``; none where there is no such file."""


class ProcessMetrics:
    """
    Reads them from the system. ``read`` may block, and is no work of the event loop: with 10,000
    descriptors it takes milliseconds to count them.
    """

    def __init__(self) -> None:
        self._collector = ProcessCollector(registry=None)

    def read(self) -> ProcessFigures:
        """
        The families; none where the system does not say.
        """
        return ProcessFigures(list(self._collector.collect()), _disk())


def _disk() -> dict[str, int]:
    try:
        lines = _IO.read_text().splitlines()
    except OSError:  # another system, or one that does not allow it
        return {}
    return {name: int(number) for name, _, number in (line.partition(": ") for line in lines)}


def write_process(found: ProcessFigures, blocks: Blocks) -> None:
    """
    Write the families that are in the table.
    """
    for family, name in (
        (families.DISK_READ, "read_bytes"),
        (families.DISK_WRITTEN, "write_bytes"),
    ):
        if name in found.disk:
            blocks.of(family.name).add("", found.disk[name])
    for metric in found.metrics:
        block = blocks.get(metric.name)
        for sample in () if block is None else metric.samples:
            assert block is not None
            value = sample.value
            block.add("", int(value) if value == int(value) else value)
