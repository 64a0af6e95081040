"""
What the machine gives to a broker: processor, descriptors, memory, network, clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.server.config import BrokerConfig
from barnabas.server.network.connection import LARGE_FRAME_ROOM_BYTES
from barnabas.server.network.socket_buffers import LARGE_ROOM_BYTES
from barnabas.server.tools.doctor.facts import Facts
from barnabas.server.tools.doctor.findings import Finding, advice, ok, problem
from barnabas.storage.explain.units import duration, rounded_size

FEW_DESCRIPTORS: Final = 4096
FEW_MAPS: Final = 65_530
"""
The default of Linux.
"""
MAPS_OF_A_PARTITION: Final = 20 << 20
"""
The two indexes of a segment with ``segment.index.bytes`` of 10 MiB.
"""
LITTLE_MEMORY: Final = 256 << 20
"""
A broker with a few hundred partitions takes about a fifth of it.
"""
EARLIEST_S: Final = 1_767_225_600
"""
The beginning of 2026: no clock that is right shows an earlier time.
"""
BEHIND_S: Final = 60.0


def check_machine(config: BrokerConfig, facts: Facts) -> Iterator[Finding]:
    """
    All facts of the machine.
    """
    yield from _form(facts)
    yield from _descriptors(facts)
    yield from _maps(facts)
    yield from _memory(config, facts)
    yield from _buffers(facts)
    yield from _clock(config, facts)


def _form(facts: Facts) -> Iterator[Finding]:
    if facts.is_compiled():
        yield ok("form", "the inner loops are compiled")
    else:
        yield advice(
            "form",
            "the inner loops are plain Python, which is several times slower",
            "`BARNABAS_COMPILE=1 pip install .` in a checkout compiles them, in 3 to 5 minutes",
        )
    if facts.has_module("uvloop"):
        yield ok("form", "uvloop is installed")
    else:
        yield advice(
            "form", "uvloop is not installed: Python's event loop is slower", "pip install uvloop"
        )


def _descriptors(facts: Facts) -> Iterator[Finding]:
    found = facts.descriptors()
    if found is None:
        yield ok("descriptors", "the system has no limit for open files")
        return
    fact = (
        f"a process may have {found.limit:,} open files: at most {found.connections:,} connections,"
        f" and {found.files:,} files of logs while there are few of them"
    )
    if found.limit >= FEW_DESCRIPTORS:
        yield ok("descriptors", fact)
    else:
        yield advice(
            "descriptors",
            fact,
            "raise the hard limit (`ulimit -Hn`, LimitNOFILE= of systemd, --ulimit of a container)",
        )


def _maps(facts: Facts) -> Iterator[Finding]:
    most = facts.sysctl("vm.max_map_count")
    if most is not None:
        fact = f"vm.max_map_count is {most:,}: a process may have so many maps of indexes"
        if most >= FEW_MAPS:
            yield ok("maps", fact)
        else:
            yield advice("maps", fact, f"sysctl -w vm.max_map_count={4 * FEW_MAPS}")
    space = facts.address_space_bytes()
    if space is not None:
        yield advice(
            "maps",
            f"the address space of a process is limited to {rounded_size(space)}, and a partition"
            f" that is written to maps up to {rounded_size(MAPS_OF_A_PARTITION)} of it",
            "remove the limit (`ulimit -v unlimited`, LimitAS=infinity of systemd)",
        )


def _memory(config: BrokerConfig, facts: Facts) -> Iterator[Finding]:
    memory = facts.memory_bytes()
    fact = f"{rounded_size(memory)} of memory"
    bound = config.queued_max_request_bytes
    if memory < LITTLE_MEMORY:
        yield advice("memory", fact, f"give the broker {rounded_size(LITTLE_MEMORY)} or more")
    elif bound > memory // 2:
        yield advice(
            "memory",
            f"{fact}, and requests may take {rounded_size(bound)} of it",
            "lower queued.max.request.bytes to a fourth of the memory, or leave it to the broker",
        )
    else:
        yield ok("memory", fact)


def _buffers(facts: Facts) -> Iterator[Finding]:
    for name, wanted, consequence in (
        ("net.core.rmem_max", LARGE_FRAME_ROOM_BYTES, "large requests arrive in more pieces"),
        ("net.core.wmem_max", LARGE_ROOM_BYTES, "large answers leave in more pieces"),
    ):
        most = facts.sysctl(name)
        if most is None:
            continue
        fact = f"{name} is {rounded_size(most)}"
        if most >= wanted:
            yield ok("network", fact)
        else:
            yield advice(
                "network",
                f"{fact}, the broker asks for {rounded_size(wanted)}: {consequence}",
                f"sysctl -w {name}={wanted}",
            )


def _clock(config: BrokerConfig, facts: Facts) -> Iterator[Finding]:
    now = facts.now_s()
    if now < EARLIEST_S:
        yield problem(
            "clock",
            "it shows a time before 2026: records get wrong timestamps, and retention deletes by"
            " them",
            "set the clock, and let NTP keep it",
        )
        return
    for directory in config.log_directories:
        newest = facts.newest_change_s(directory)
        if newest is not None and newest > now + BEHIND_S:
            ahead = duration(round((newest - now) * 1000))
            yield problem(
                "clock",
                f"it is {ahead} behind the newest file of {directory}",
                "set the clock, and let NTP keep it: records that were written before are kept"
                " longer than they should be",
            )
            return
    yield ok("clock", "it is not behind the files of the log directories")
