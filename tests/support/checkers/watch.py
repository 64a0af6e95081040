"""
The checkers of one broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from time import perf_counter
from typing import Any, Final

from barnabas.protocol import apis
from barnabas.protocol.structs import replace
from tests.support.checkers import findings
from tests.support.checkers.acknowledged import Acknowledged, checksum_of
from tests.support.checkers.groups import Groups, commits
from tests.support.checkers.positions import Positions
from tests.support.checkers.resources import Resources
from tests.support.checkers.stored import Stored

EVERY_S: Final = 0.05
PART: Final = 50
"""
A look takes at most one part in so many of the time between two looks.
"""

CHANGES: Final = (
    apis.ALTER_CONFIGS.key,
    apis.ALTER_PARTITION_REASSIGNMENTS.key,
    apis.DELETE_RECORDS.key,
    apis.ELECT_LEADERS.key,
    apis.INCREMENTAL_ALTER_CONFIGS.key,
)
"""
Requests that change offsets, epochs or cleanup policies, and are rare.
"""

Answered = Callable[[Any], None]
"""
Takes an answer, or None where there is none.
"""
Listener = Callable[[Any], Answered]
"""
Takes a request before it is handled.
"""


class Watch:
    """
    Looks at a broker while it runs, after requests that may break a rule, and when it has stopped.

    Used on the event loop's thread only.
    """

    def __init__(self, broker: Any) -> None:
        self._broker = broker
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._positions = Positions(self._report)
        self._acknowledged = Acknowledged(self._report)
        self._groups = Groups(
            self._report,
            now_ms=broker.clock.now_ms,
            retention_ms=self._retention_ms,
            topic_id=self._topic_id,
        )
        self._is_owner = not broker.config.barnabas_read_only
        self._resources = Resources(
            self._report, broker.files, broker.config.log_directories, is_owner=self._is_owner
        )
        findings.count_broker()

    def _report(self, finding: str) -> None:
        self._count += 1
        if self._count <= findings.MOST:
            findings.report(finding)

    def _retention_ms(self) -> int:
        # As it is now: the option of a running broker may change.
        configs = self._broker.parts.topics.configs.brokers.current()
        return int(configs.offsets_retention_minutes) * 60_000

    def _topic_id(self, name: str) -> Any:
        topic = self._broker.parts.topics.get(name)
        return None if topic is None else topic.id

    # While it runs.

    def started(self) -> None:
        """
        Begin to look.
        """
        self._acknowledged.begin(self._broker.partitions)
        self._look_and_wait()

    def look(self) -> None:
        """
        Look at all that may be wrong now.
        """
        broker = self._broker
        if broker.parts is None:
            return
        self._positions.look(broker.partitions)
        self._acknowledged.look(broker.partitions)
        coordinator = broker.parts.coordinators.group_coordinator
        if coordinator is not None:
            self._groups.look(coordinator.shards)

    def _look_and_wait(self) -> None:
        began = perf_counter()
        self.look()
        pause = max(EVERY_S, PART * (perf_counter() - began))
        self._timer = asyncio.get_running_loop().call_later(pause, self._look_and_wait)

    # When it stops.

    def stopping(self) -> None:
        """
        Look for the last time: the coordinators are about to stop.
        """
        if self._timer is not None:
            self._timer.cancel()
            self.look()

    def closed(self) -> None:
        """
        Read the files of a broker that has closed its logs.
        """
        broker = self._broker
        if broker.parts is None or not self._is_owner:
            return
        stored = Stored(self._report, broker.files)
        manager = broker.log_manager
        # A failure during the stop is known to the channel only.
        live = [
            directory.absolute()
            for directory in manager.directories.live
            if not manager.failures.has_offline_log_dir(directory)
        ]
        partitions = [
            partition
            for partition in broker.partitions
            if partition.error is None and partition.log.dir.parent.absolute() in live
        ]
        found = {
            (each.topic_id, each.index): stored.check(each.log.dir.absolute())
            for each in partitions
        }
        self._acknowledged.check(
            partitions, lambda partition: found.get((partition.topic_id, partition.index))
        )

    def stopped(self) -> None:
        """
        See what a stopped broker holds.
        """
        self._resources.check(self._broker)

    # Requests.

    def produce(self, request: Any) -> Answered:
        """
        Remember what a producer sends; the function that is returned takes the answer.
        """
        sent: dict[tuple[Any, int], tuple[Any, int | None]] = {}
        for topic in request.topic_data:
            for data in topic.partition_data:
                name = topic.name or topic.topic_id
                partition = self._partition(name, data.index)
                sent[name, data.index] = (partition, checksum_of(data.records))

        def answered(answer: Any) -> None:
            for topic in getattr(answer, "responses", ()):
                for response in topic.partition_responses:
                    name = topic.name or topic.topic_id
                    if response.error_code == 0 and response.base_offset >= 0:
                        partition, checksum = sent.get((name, response.index), (None, None))
                        # The topic may have been deleted meanwhile, and created again.
                        if partition and partition is self._partition(name, response.index):
                            self._positions.look([partition])
                            self._acknowledged.add(partition, response.base_offset, checksum)

        return answered

    def _partition(self, name: Any, index: int) -> Any:
        partitions = self._broker.partitions
        if not isinstance(name, str):
            name = partitions.name_of(name)
        return None if name is None else partitions.get(name, index)

    def commit(self, request: Any) -> Answered:
        """
        Remember what a client commits.
        """
        asked = self._groups.asks()
        asked.values.update(commits(request, self._broker.partitions.name_of))

        def answered(answer: Any) -> None:
            asked.is_done = True
            for topic in getattr(answer, "topics", ()):
                name = topic.name or self._broker.partitions.name_of(topic.topic_id)
                for partition in topic.partitions:
                    if name and partition.error_code == 0:
                        self._acknowledge((request.group_id, name, partition.partition_index))

        return answered

    def _acknowledge(self, key: tuple[str, str, int]) -> None:
        coordinator = self._broker.parts.coordinators.group_coordinator
        if coordinator is not None:
            shard = coordinator.shards.get(coordinator.shards.partition_for(key[0]))
            if shard is not None and shard.log.is_open:
                offset = shard.state.offsets.committed.get(*key)
                if offset is not None:
                    self._groups.acknowledge(key, offset.offset)

    def change(self, _: Any) -> Answered:
        """
        Look before and after a request that changes what the rules are about.
        """
        self.look()
        return lambda _: self.look()

    def commit_in_transaction(self, request: Any) -> Answered:
        """
        Remember what a transaction is going to commit.
        """
        for key, offset in commits(request, self._broker.partitions.name_of):
            self._groups.asks_in_transaction(key, offset)
        return _nothing

    def delete_offsets(self, request: Any) -> Answered:
        """
        Remember which offsets a client deletes.
        """
        asked = self._groups.asks()
        for topic in request.topics:
            for partition in topic.partitions:
                asked.keys.add((request.group_id, topic.name, partition.partition_index))

        def answered(_: Any) -> None:
            asked.is_done = True

        return answered

    def delete_groups(self, request: Any) -> Answered:
        """
        Remember which groups a client deletes.
        """
        asked = self._groups.asks()
        asked.names.update(request.groups_names)

        def answered(_: Any) -> None:
            asked.is_done = True

        return answered

    def watched(self, handlers: Mapping[int, Any]) -> Mapping[int, Any]:
        """
        Handlers that show their requests and answers to this object.
        """
        listeners: dict[int, Listener] = {
            apis.PRODUCE.key: self.produce,
            apis.OFFSET_COMMIT.key: self.commit,
            apis.TXN_OFFSET_COMMIT.key: self.commit_in_transaction,
            apis.OFFSET_DELETE.key: self.delete_offsets,
            apis.DELETE_GROUPS.key: self.delete_groups,
        }
        listeners |= dict.fromkeys(CHANGES, self.change)
        return WatchedHandlers(handlers, listeners)


def _nothing(_: Any) -> None:
    pass


class WatchedHandlers(Mapping[int, Any]):
    """
    The handlers of a broker, some of which are listened to.
    """

    def __init__(
        self,
        handlers: Mapping[int, Any],
        listeners: Mapping[int, Listener],
    ) -> None:
        self._handlers = handlers
        self._listeners = listeners
        self._made: dict[int, Any] = {}

    def __getitem__(self, key: int) -> Any:
        listener = self._listeners.get(key)
        if listener is None:
            return self._handlers[key]
        made = self._made.get(key)
        if made is None:
            registration = self._handlers[key]
            handler = _watched(registration.handler, listener)
            made = self._made[key] = replace(registration, handler=handler)
        return made

    def __iter__(self) -> Iterator[int]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)

    def __contains__(self, key: object) -> bool:
        return key in self._handlers


def _watched(handler: Callable[[Any, Any], Any], listener: Listener) -> Any:
    async def handle(request: Any, context: Any) -> Any:
        answered = listener(request)
        try:
            answer = handler(request, context)
            if isinstance(answer, Awaitable):
                answer = await answer
        except BaseException:
            answered(None)
            raise
        answered(answer)
        return answer

    return handle
