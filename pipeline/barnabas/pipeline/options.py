"""
The options of the source ``barnabas``.

Those that Spark's Kafka connector has too have its names and values, so that a query can go from
one to the other: ``kafka.isolation.level`` means what it means there, other options with ``kafka.``
are passed over. Names are taken in any case, as Spark hands them over in lower case.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeVar

from barnabas.pipeline.decoding.decode import MAX_BATCH_BYTES
from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.schemas import Level
from barnabas.storage.state_files.file_names import TopicPartition

MiB: Final = 1 << 20

LATEST: Final = -1
EARLIEST: Final = -2
"""What these mean in place of an offset, in the JSON of the connector."""

_IGNORED: Final = "kafka."


class OnCorrupt(Enum):
    """
    What becomes of a batch that cannot be read.
    """

    FAIL = "fail"
    SKIP = "skip"
    PERMISSIVE = "permissive"


class IsolationLevel(Enum):
    """
    Whether records of aborted and of open transactions are rows.
    """

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class ReadUpTo(Enum):
    """
    Where the end of a log is: where its high watermark was last noted, or at its last whole batch.
    """

    HIGH_WATERMARK = "highWatermark"
    LOG_END = "logEnd"


class NoSuchTime(Enum):
    """
    What a starting timestamp means that is later than all records.
    """

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True)
class Topics:
    """
    Which partitions are read. Of nothing given, all but those of internal topics.
    """

    names: frozenset[str] | None = None
    pattern: re.Pattern[str] | None = None
    partitions: frozenset[TopicPartition] | None = None

    def has(self, partition: TopicPartition) -> bool:
        if self.names is not None:
            return partition.topic in self.names
        if self.pattern is not None:
            return self.pattern.fullmatch(partition.topic) is not None
        if self.partitions is not None:
            return partition in self.partitions
        return not partition.topic.startswith("__")


@dataclass(frozen=True)
class Bound:
    """
    Where the rows of each partition begin or end.

    A partition has at most one of a timestamp and an offset of its own; ``offset`` and
    ``timestamp_ms`` are those of all others.
    """

    offset: int | None = None
    """May be ``EARLIEST`` or ``LATEST``."""
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamp_ms: int | None = None
    timestamps_ms: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ReadOptions:
    """
    What to read, and how.
    """

    paths: tuple[str, ...]
    """Log directories, or directories of partitions."""
    topics: Topics = Topics()
    start: Bound = Bound(EARLIEST)
    end: Bound = Bound(LATEST)
    no_such_time: NoSuchTime = NoSuchTime.ERROR
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    read_up_to: ReadUpTo = ReadUpTo.HIGH_WATERMARK
    level: Level = Level.RECORDS
    on_corrupt: OnCorrupt = OnCorrupt.FAIL
    fail_on_data_loss: bool = True
    include_headers: bool = True
    bytes_per_task: int = 64 * MiB
    """Of segments, as they are stored; a task has as many as fit, or a part of one."""
    segment_open_bytes: int = MiB // 4
    """What a segment counts more than its bytes, when they are packed into tasks."""
    min_partitions: int | None = None
    chunk_bytes: int = 4 * MiB
    """Read and decoded together."""
    max_batch_bytes: int = MAX_BATCH_BYTES
    """Of one batch, decompressed."""
    max_bytes_per_trigger: int | None = None
    max_offsets_per_trigger: int | None = None

    @property
    def is_permissive(self) -> bool:
        return self.on_corrupt is OnCorrupt.PERMISSIVE


def parse_options(given: Mapping[str, str]) -> ReadOptions:
    """
    Raises:
        InvalidOption: there is no such option, or its value makes no sense.
    """
    return _Parser(given).parse()


def parse_stream_options(given: Mapping[str, str]) -> ReadOptions:
    """
    The options of a stream, which begins at the end of the logs unless told otherwise, as the
    connector's does.

    Raises:
        InvalidOption: as ``parse_options``; or the option is of no use in a stream.
    """
    parser = _Parser(given)
    options = parser.parse(start=LATEST)
    no_use = parser.given_of("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
    if no_use:
        raise InvalidOption(f"A stream has no end: {no_use[0]} is for batch queries.")
    if options.level is Level.SEGMENTS:
        raise InvalidOption("level=segments is for batch queries: a segment is never finished.")
    return options


_NAMES: Final = (
    "path",
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "isolationLevel",
    "readUpTo",
    "level",
    "onCorrupt",
    "failOnDataLoss",
    "includeHeaders",
    "bytesPerTask",
    "segmentOpenBytes",
    "minPartitions",
    "chunkBytes",
    "maxBatchBytes",
    "maxBytesPerTrigger",
    "maxOffsetsPerTrigger",
)
_ISOLATION_OF_CONSUMER: Final = "kafka.isolation.level"

_E = TypeVar("_E", bound=Enum)


class _Parser:
    def __init__(self, given: Mapping[str, str]) -> None:
        known = {name.lower(): name for name in _NAMES}
        self._given: dict[str, str] = {}
        for name, value in given.items():
            lower = name.lower()
            if lower in known:
                self._given[known[lower]] = value
            elif lower == _ISOLATION_OF_CONSUMER:
                self._given.setdefault("isolationLevel", value)
            elif not lower.startswith(_IGNORED):
                close = difflib.get_close_matches(lower, known, 1)
                hint = f" Did you mean {known[close[0]]}?" if close else ""
                raise InvalidOption(f"The source barnabas has no option {name}.{hint}")

    def given_of(self, *names: str) -> list[str]:
        return [name for name in names if name in self._given]

    def parse(self, start: int = EARLIEST) -> ReadOptions:
        default = ReadOptions(paths=())
        number = self._number
        return ReadOptions(
            paths=self._paths(),
            topics=self._topics(),
            start=self._bound("starting", start),
            end=self._bound("ending", LATEST),
            no_such_time=self._choice("startingOffsetsByTimestampStrategy", default.no_such_time),
            isolation_level=self._choice("isolationLevel", default.isolation_level),
            read_up_to=self._choice("readUpTo", default.read_up_to),
            level=self._choice("level", default.level),
            on_corrupt=self._choice("onCorrupt", default.on_corrupt),
            fail_on_data_loss=self._flag("failOnDataLoss", default.fail_on_data_loss),
            include_headers=self._flag("includeHeaders", default.include_headers),
            bytes_per_task=number("bytesPerTask", default.bytes_per_task),
            segment_open_bytes=number("segmentOpenBytes", default.segment_open_bytes, at_least=0),
            min_partitions=number("minPartitions", None),
            chunk_bytes=number("chunkBytes", default.chunk_bytes, at_least=4096),
            max_batch_bytes=number("maxBatchBytes", default.max_batch_bytes),
            max_bytes_per_trigger=number("maxBytesPerTrigger", None),
            max_offsets_per_trigger=number("maxOffsetsPerTrigger", None),
        )

    def _paths(self) -> tuple[str, ...]:
        paths = tuple(path.strip() for path in self._given.get("path", "").split(","))
        if not all(paths):
            raise InvalidOption(
                'The source barnabas needs .option("path", directory): a log directory of a broker,'
                " or several with commas between them."
            )
        return paths

    def _topics(self) -> Topics:
        given = self.given_of("subscribe", "subscribePattern", "assign")
        if len(given) > 1:
            raise InvalidOption(f"Only one of {', '.join(given)} can be given.")
        if given == ["subscribe"]:
            names = [name.strip() for name in self._given["subscribe"].split(",")]
            return Topics(names=frozenset(filter(None, names)))
        if given == ["subscribePattern"]:
            try:
                return Topics(pattern=re.compile(self._given["subscribePattern"]))
            except re.error as error:
                raise InvalidOption(f"subscribePattern is no pattern: {error}.") from error
        if given == ["assign"]:
            assigned = self._json("assign", '{"topic": [0, 1]}')
            try:
                partitions = {
                    TopicPartition(topic, int(partition))
                    for topic, numbers in assigned.items()
                    for partition in numbers
                }
            except (TypeError, ValueError) as error:
                raise self._bad_json("assign", '{"topic": [0, 1]}') from error
            return Topics(partitions=frozenset(partitions))
        return Topics()

    def _bound(self, which: str, default: int) -> Bound:
        """
        The time of all partitions counts before that of single ones, and that before offsets, as in
        the connector.
        """
        for_all = self._number(f"{which}Timestamp", None, at_least=0)
        if for_all is not None:
            return Bound(timestamp_ms=for_all)
        by_timestamp = f"{which}OffsetsByTimestamp"
        if by_timestamp in self._given:
            return Bound(default, timestamps_ms=self._per_partition(by_timestamp))
        name = f"{which}Offsets"
        text = self._given.get(name, "").strip()
        if not text:
            return Bound(default)
        words = {"earliest": EARLIEST, "latest": LATEST}
        if text.lower() in words:
            bound = Bound(words[text.lower()])
        else:
            bound = Bound(default, self._per_partition(name))
        self._check(name, bound)
        return bound

    @staticmethod
    def _check(name: str, bound: Bound) -> None:
        offsets = {bound.offset, *bound.offsets.values()}
        if any(offset is not None and offset < EARLIEST for offset in offsets):
            raise InvalidOption(
                f"{name} has an offset below {EARLIEST}, which stands for earliest."
            )
        if EARLIEST in offsets and name == "endingOffsets":
            raise InvalidOption(f"{name} cannot be earliest.")

    def _per_partition(self, name: str) -> dict[TopicPartition, int]:
        example = '{"topic": {"0": 42, "1": -1}}'
        try:
            return {
                TopicPartition(topic, int(partition)): int(value)
                for topic, numbers in self._json(name, example).items()
                for partition, value in numbers.items()
            }
        except (AttributeError, TypeError, ValueError) as error:
            raise self._bad_json(name, example) from error

    def _json(self, name: str, example: str) -> dict[str, Any]:
        try:
            value = json.loads(self._given[name])
        except ValueError as error:
            raise self._bad_json(name, example) from error
        if not isinstance(value, dict):
            raise self._bad_json(name, example)
        return value

    def _bad_json(self, name: str, example: str) -> InvalidOption:
        return InvalidOption(f"{name} should be JSON like {example}, not {self._given[name]!r}.")

    def _choice(self, name: str, default: _E) -> _E:
        text = self._given.get(name)
        if text is None:
            return default
        for choice in type(default):
            if choice.value.lower() == text.strip().lower():
                return choice
        choices = ", ".join(choice.value for choice in type(default))
        raise InvalidOption(f"{name} is one of {choices}, not {text!r}.")

    def _flag(self, name: str, default: bool) -> bool:
        text = self._given.get(name, str(default)).strip().lower()
        if text not in ("true", "false"):
            raise InvalidOption(f"{name} is true or false, not {self._given[name]!r}.")
        return text == "true"

    def _number(self, name: str, default: Any, *, at_least: int = 1) -> Any:
        text = self._given.get(name)
        if text is None:
            return default
        if not re.fullmatch(r"\s*[0-9]+\s*", text) or int(text) < at_least:
            raise InvalidOption(f"{name} is a number of at least {at_least}, not {text!r}.")
        return int(text)
