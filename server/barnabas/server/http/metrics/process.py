"""
Memory, processor time and descriptors of the process, as Prometheus' clients name them.
"""

from __future__ import annotations

from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

from barnabas.server.http.metrics.exposition import Blocks


class ProcessMetrics:
    """
    Reads them from the system. ``read`` may block, and is no work of the event loop: with 10,000
    descriptors it takes milliseconds to count them.
    """

    def __init__(self) -> None:
        self._collector = ProcessCollector(registry=None)

    def read(self) -> list[Metric]:
        """
        The families; none where the system does not say.
        """
        return list(self._collector.collect())


def write_process(found: list[Metric], blocks: Blocks) -> None:
    """
    Write the families that are in the table.
    """
    for metric in found:
        block = blocks.get(metric.name)
        for sample in () if block is None else metric.samples:
            assert block is not None
            value = sample.value
            block.add("", int(value) if value == int(value) else value)
