"""
The counters and gauges that the parts of the broker register, and single numbers of its state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coordination.steps import checkpoint
from barnabas.server.http.metrics import families
from barnabas.server.http.metrics.exposition import Blocks, labels_text
from barnabas.server.http.metrics.families import OWN, Family, Own

if TYPE_CHECKING:
    from barnabas.server.http.observed import ObservedBroker
    from barnabas.server.metrics import Sample

SAMPLES_PER_STEP = 16


async def write_counted(broker: ObservedBroker, build: str, blocks: Blocks) -> None:
    """
    Write all of them.

    Args:
        build: the version of the broker.
    """
    for number, sample in enumerate(tuple(broker.metrics), 1):
        own = OWN.get(sample.name) or _unnamed(sample)
        given = zip(own.labels, (value for _, value in sample.labels), strict=True)
        blocks.add(own.family).add(labels_text(dict([*given, *own.fixed])), sample.value)
        if number % SAMPLES_PER_STEP == 0:
            await checkpoint()
    blocks.of(families.BROKER_STATE.name).add("", int(broker.readiness.state))
    blocks.of(families.BUILD.name).add(labels_text({"version": build}), 1)
    await checkpoint()
    _write_resources(broker, blocks)
    _write_work(broker, blocks)


def _write_resources(broker: ObservedBroker, blocks: Blocks) -> None:
    if broker.connections is not None:
        resources = broker.connections.resources
        memory = resources.request_memory
        left = max(0, memory.limit_bytes - memory.used_bytes)
        blocks.of(families.MEMORY_LEFT.name).add("", left)
        blocks.of(families.REQUESTS_QUEUED.name).add("", resources.queued_requests)
    files = broker.files.open_files
    blocks.of(families.OPEN_FILES.name).add("", len(files))
    if files.limit is not None:
        blocks.of(families.MOST_OPEN_FILES.name).add("", files.limit)


def _write_work(broker: ObservedBroker, blocks: Blocks) -> None:
    logs = broker.log_manager
    if logs is None:
        return
    blocks.of(families.RETENTION.name).add("", logs.deleted_segments)
    if logs.cleaner is not None:
        totals = logs.cleaner.totals
        blocks.of(families.CLEANINGS.name).add("", totals.cleanings)
        blocks.of(families.CLEANER_READ.name).add("", totals.bytes_read)
        blocks.of(families.CLEANER_WRITTEN.name).add("", totals.bytes_written)


def _unnamed(sample: Sample) -> Own:
    """
    A metric that the table does not have, under a name of ours.
    """
    labels = tuple(name for name, _ in sample.labels)
    return Own(Family(f"barnabas_{sample.name}", sample.kind, sample.help, labels), labels)
