"""
The sweep: requests with the largest value of one field, and what they may cost everybody else.

After each request the broker still writes its metadata, and after those of an API all others answer
as before. While they are served, and when their clients are gone, memory and the turns of the event
loop stay within docs/limits.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from barnabas.protocol.codec.schema import Kind
from barnabas.server.requests.answer_room import ENTRY_BYTES
from tests.interop.sweep.cases import Case, cases_of, swept_apis
from tests.interop.sweep.measured import MeasuredBroker
from tests.interop.sweep.peers import CONNECTIONS, TIMES, Peers
from tests.interop.sweep.probes import Probes
from tests.interop.sweep.values import Make, Size, largest_values
from tests.interop.sweep.world import World, furnished
from tests.support.broker_process import resident_bytes
from tests.support.limits import stated

MiB: Final = 1 << 20
IS_WHOLE: Final = os.environ.get("BARNABAS_SWEEP") == "all"
"""
Whether every field is swept in every way, with values of up to 90 MiB: this takes hours.
"""
SEED: Final = int(os.environ.get("BARNABAS_SWEEP_SEED", "0"))
SAMPLE: Final = 6
"""
How many fields are drawn for each of the ways ``long``, ``often`` and ``unread``, beside those
below.
"""
REMEMBERED: Final = {
    "consumer_group_heartbeat": ("subscribed_topic_regex",),
    "create_delegation_token": ("renewers.principal_name",),
    "fetch": ("topics.topic",),
    "init_producer_id": ("transactional_id",),
    "join_group": ("protocols.metadata", "group_instance_id"),
    "offset_commit": ("topics.partitions.committed_metadata",),
    "share_fetch": ("group_id",),
}
"""
Fields whose values a broker may keep: they are always sent often.
"""
ANSWERED_AT_LENGTH: Final = {
    "describe_configs": ("resources",),
    "describe_delegation_token": ("owners",),
    "list_groups": ("states_filter",),
    "list_offsets": ("topics.partitions",),
    "list_transactions": ("transactional_id_pattern",),
    "metadata": ("topics",),
}
"""
Fields of requests that cost much work or have large answers: peers that do not read always send
them.
"""
LONG_LISTS: Final = {
    "alter_configs": ("resources.configs.name",),
    "alter_user_scram_credentials": ("upsertions",),
    "create_delegation_token": ("renewers.principal_name",),
    "describe_configs": ("resources",),
    "incremental_alter_configs": ("resources.configs.name",),
    "initialize_share_group_state": ("topics",),
    "share_acknowledge": ("topics", "topics.partitions"),
    "share_fetch": ("topics", "topics.partitions"),
    "streams_group_heartbeat": ("topology.subtopologies",),
    "write_txn_markers": ("markers.topics",),
}
"""
Fields of requests that served a long list in one turn, or that a collection of cycles visited in
one: they are always sent with very many entries.
"""
TRIES: Final = 3
"""
A busy machine makes some turns longer: the shortest of so many tries counts.
"""
FREED_S: Final = 10.0
"""
How long memory of clients that have left may take to be free.
"""
REPORT: Final = os.environ.get("BARNABAS_SWEEP_REPORT", os.devnull)
"""
The file for the memory and the longest turn of each field.
"""

QUEUED_BYTES: Final = 512 * MiB if IS_WHOLE else 32 * MiB
COORDINATOR_BYTES: Final = 32 * MiB
SETTINGS: Final = {
    "queued.max.request.bytes": f"{QUEUED_BYTES}",
    "socket.request.max.bytes": f"{(100 if IS_WHOLE else 16) * MiB}",
    "barnabas.max.coordinator.bytes": f"{COORDINATOR_BYTES}",
}
COST: Final = 10
"""
How many times its size a request may take while it is answered: its texts and those of its answer,
up to four bytes for each character, and the bytes of both.
"""
AT_LEAST_COST_BYTES: Final = 64 * MiB

DECODED: Final = 5
"""
How many times its bytes a queued request takes once its texts are decoded and compared: the frame,
and four bytes for each character.
"""


class Way(NamedTuple):
    """
    How requests are sent, how many of them at once, and how large they are.
    """

    name: str
    times: int
    at_once: int
    size: Size
    always: Mapping[str, tuple[str, ...]]


ONCE: Final = Way("once", 1, 1, Size(90 * MiB, 100_000) if IS_WHOLE else Size(10 * MiB, 4_000), {})
LONG: Final = Way("long", 1, 1, Size(10 * MiB, 100_000), LONG_LISTS)
OFTEN: Final = Way("often", TIMES, 1, Size(MiB if IS_WHOLE else 128 * 1024, 200), REMEMBERED)
UNREAD: Final = Way(
    "unread",
    CONNECTIONS,
    CONNECTIONS,
    Size(MiB if IS_WHOLE else 512 * 1024, 4_000),
    ANSWERED_AT_LENGTH,
)

UNBOUNDED: Final = (
    "alter_client_quotas",
    "alter_configs",
    "alter_user_scram_credentials",
    "create_acls",
    "create_topics",
    "incremental_alter_configs",
)
"""
APIs that a client needs a permission for, if there is an authorizer. What they keep has no total
bound.
"""
_OF_MEMBERS: Final = stated("members") + COORDINATOR_BYTES
KEPT_BYTES: Final[Mapping[str, float]] = {
    "add_offsets_to_txn": COORDINATOR_BYTES,
    "add_partitions_to_txn": COORDINATOR_BYTES,
    "consumer_group_heartbeat": _OF_MEMBERS,
    "create_delegation_token": stated("tokens-of-a-requester"),
    "fetch": stated("session-partitions") * 660,
    "init_producer_id": COORDINATOR_BYTES,
    "initialize_share_group_state": COORDINATOR_BYTES,
    "join_group": _OF_MEMBERS,
    "offset_commit": COORDINATOR_BYTES,
    "share_fetch": stated("share-session-names") + stated("share-session-partitions") * 360,
    "share_group_heartbeat": _OF_MEMBERS,
    "streams_group_heartbeat": _OF_MEMBERS,
    "sync_group": _OF_MEMBERS,
    "txn_offset_commit": COORDINATOR_BYTES,
    "write_share_group_state": COORDINATOR_BYTES,
}
"""
What the budgets of the broker let it keep of the requests to an API when their clients are gone.
"""


class Sweep:
    """
    Sweeps the APIs of one broker.
    """

    def __init__(self, broker: MeasuredBroker, world: World, *, is_guarded: bool) -> None:
        """
        Args:
            is_guarded: whether the broker has an authorizer.
        """
        self._is_guarded = is_guarded
        self._broker = broker
        self._world = world
        self._peers = Peers(broker, world)
        self._probes = Probes(broker, world)
        self._sent = 0

    def check(self, api: str, way: Way) -> None:
        """
        Sweep the fields of an API that are sent in that way.
        """
        before = resident_bytes(self._broker.pid)
        sent = 0
        for case in cases(api, way):
            for make in largest_values(case, self._world, way.size):
                sent += self._check(case, way, make)
        most = before + self._kept_bytes(api, sent) + stated("hostile-crowd")
        end = time.monotonic() + FREED_S
        while resident_bytes(self._broker.pid) > most and time.monotonic() < end:
            time.sleep(0.05)
        left = resident_bytes(self._broker.pid) - before
        assert left <= most - before, f"{left // MiB} MiB more are held after their clients left"
        self._probes.check_all()

    def _check(self, case: Case, way: Way, make: Make) -> int:
        """
        Check the memory and the turns of one value; return about how many bytes were sent.
        """
        longest = 1.0
        for tried in range(1, TRIES + 1):
            self._broker.start_over()
            before = resident_bytes(self._broker.pid)
            # A group that is there already may cost less.
            sent = self._send(case, way, _numbered_from(self._sent, make))
            self._sent += way.times
            grown = self._broker.peak_bytes - before
            most = self._most_bytes(case.api, way, sent)
            self._report(case, way, grown)
            assert grown <= most, f"{case} takes {grown >> 20} MiB instead of {int(most) >> 20} MiB"
            self._probes.check_changes()
            longest = min(longest, self._broker.longest_turn_s)
            if longest <= _longest_turn_s(case, sent):
                return sent * way.times * tried
        raise AssertionError(f"{case} takes a turn of {longest * 1000:.0f} ms")

    def _report(self, case: Case, way: Way, grown: int) -> None:
        turn_ms = self._broker.longest_turn_s * 1000
        with Path(REPORT).open("a") as report:
            report.write(f"{grown >> 20:5} MiB {turn_ms:5.0f} ms {way.name} {case}\n")

    def _send(self, case: Case, way: Way, make: Make) -> int:
        """
        Send the requests, and return the size of one.
        """
        if way is ONCE or way is LONG:
            return self._peers.once(case, make)
        if way is OFTEN:
            return self._peers.often(case, make)
        return self._peers.unread(case, make, self._probes.check_changes)

    def _kept_bytes(self, api: str, sent_bytes: int) -> float:
        """
        The most that the broker keeps of requests of *sent_bytes* to an API.
        """
        if api in UNBOUNDED and not self._is_guarded:
            return COST * sent_bytes
        return KEPT_BYTES.get(api, 0)

    def _most_bytes(self, api: str, way: Way, frame_bytes: int) -> float:
        """
        What clients may take while they are served.
        """
        request = max(COST * frame_bytes, AT_LEAST_COST_BYTES)
        queued = (DECODED if way.at_once > 1 else 1.25) * QUEUED_BYTES
        if way is LONG:  # An entry of the answer for each of the request, beside it.
            request += ENTRY_BYTES * way.size.entries
        return request + self._kept_bytes(api, frame_bytes * way.times) + queued


def _numbered_from(first: int, make: Make) -> Make:
    return lambda number: make(first + number)


def _longest_turn_s(case: Case, frame_bytes: int) -> float:
    """
    The longest turn that requests of *frame_bytes* may take.
    """
    has_value = case.field.type in (Kind.BYTES, Kind.RECORDS)
    of_value = stated("value-turn") * frame_bytes / MiB if has_value else 0
    return max(stated("longest-turn"), of_value)


def cases(api: str, way: Way) -> list[Case]:
    """
    The fields of an API that are swept in that way.
    """
    found = cases_of(api, all_versions=IS_WHOLE)
    if way is ONCE or (IS_WHOLE and way is not LONG):
        return found
    drawn = _drawn(way.name)
    paths = way.always.get(api, ())
    return [each for each in found if ".".join(each.path) in paths or str(each) in drawn]


def _drawn(name: str) -> set[str]:
    every = [str(case) for api in swept_apis() for case in cases_of(api, all_versions=False)]
    return set(Random(f"{name}-{SEED}").sample(every, SAMPLE))


def apis(way: Way) -> list[str]:
    """
    The APIs that are swept in that way.
    """
    return [api for api in swept_apis() if cases(api, way)]


def a_third(names: list[str]) -> list[str]:
    """
    Every third of *names*, by the seed; all of them for the whole sweep.
    """
    return names if IS_WHOLE else names[SEED % 3 :: 3]


@contextmanager
def sweeping(directory: Path, settings: Mapping[str, str]) -> Iterator[Sweep]:
    """
    A sweep of a new broker, which logs no traceback.
    """
    with furnished(directory, {**SETTINGS, **settings}) as (broker, world):
        yield Sweep(broker, world, is_guarded=bool(settings))
        _, _, traceback = broker.log_text().partition("Traceback")
        assert not traceback, traceback[:4000]
