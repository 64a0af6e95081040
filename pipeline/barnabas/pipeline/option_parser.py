"""
The options of the source ``barnabas``, from text.

Those that Spark's Kafka connector has too have its names and values, so that a query can go from
one to the other: ``kafka.isolation.level`` means what it means there. Without a path,
``kafka.bootstrap.servers`` names the broker to read from, and other options with ``kafka.`` are
those of its client; with a path they are passed over. Those with ``fs.s3a.`` and ``fs.azure.`` are
Hadoop's, and say how object stores are reached. Those of Spark's file sources have theirs:
``mode``, ``maxPartitionBytes``, ``openCostInBytes``, ``timeZone``, and ``paths``, which is what
``load([a, b])`` becomes. Names are taken in any case, as Spark hands them over in lower case. An
old name works for one version, with a warning.
"""

from __future__ import annotations

import difflib
import json
import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from datetime import tzinfo
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeVar

from barnabas.client.settings import (
    BOOTSTRAP,
    PREFIX,
    READER,
    ClientSettings,
    parse_client,
)
from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.options import (
    EARLIEST,
    LATEST,
    Mode,
    ReadBound,
    ReadOptions,
    TopicSelection,
)
from barnabas.pipeline.schemas import CORRUPT_COLUMN, OLD_CORRUPT_COLUMN, RowLevel
from barnabas.pipeline.spark_values import parse_size, parse_time, parse_zone
from barnabas.pipeline.storage import HADOOP, StorageOptions
from barnabas.storage.topic_partition import TopicPartition
from barnabas.storage.units import LONG_MAX

_NOTHING: Final[Mapping[str, str]] = {}


def parse_options(given: Mapping[str, str], settings: Mapping[str, str] = _NOTHING) -> ReadOptions:
    """
    Args:
        settings: of the session, that say how object stores are reached where the options do not.

    Raises:
        InvalidOption: there is no such option, or its value makes no sense.
    """
    return _Parser(given, settings).parse()


def parse_stream_options(
    given: Mapping[str, str], settings: Mapping[str, str] = _NOTHING
) -> ReadOptions:
    """
    The options of a stream, which begins at the end of the logs unless told otherwise, as the
    connector's does.

    Args:
        settings: as ``parse_options`` takes them.

    Raises:
        InvalidOption: as ``parse_options``; or the option is of no use in a stream.
    """
    parser = _Parser(given, settings)
    options = parser.parse(start=LATEST)
    no_use = parser.given_of("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
    if no_use:
        raise InvalidOption(f"A stream has no end: {no_use[0]} is for batch queries.")
    if options.level is RowLevel.SEGMENTS:
        raise InvalidOption("level=segments is for batch queries: a segment is never finished.")
    return options


OPTION_NAMES: Final = (
    "path",
    "paths",
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
    "timeZone",
    "isolationLevel",
    "readUpTo",
    "level",
    "mode",
    "failOnDataLoss",
    "includeHeaders",
    "maxPartitionBytes",
    "openCostInBytes",
    "minPartitions",
    "chunkBytes",
    "maxBatchBytes",
    "maxBytesPerTrigger",
    "maxOffsetsPerTrigger",
    "maxRecordsPerPartition",
)
_OF_FILES: Final = ("readUpTo", "maxPartitionBytes", "openCostInBytes", "maxBytesPerTrigger")
_OF_A_BROKER: Final = ("maxRecordsPerPartition",)
OLD_NAMES: Final = {
    "onCorrupt": "mode",
    "bytesPerTask": "maxPartitionBytes",
    "segmentOpenBytes": "openCostInBytes",
}
_OLD_MODES: Final = {
    "fail": Mode.FAILFAST.value,
    "skip": Mode.DROPMALFORMED.value,
    "permissive": Mode.PERMISSIVE.value,
}
"""The values of ``onCorrupt``."""
_ISOLATION_OF_CONSUMER: Final = "kafka.isolation.level"
_MOST_BYTES: Final = 1 << 30
"""Decoded together: Arrow has 31 bits for where a value is in its column."""

_EXAMPLE: Final = '{"topic": {"0": 42, "1": -1}}'

_E = TypeVar("_E", bound=Enum)


class _Parser:
    def __init__(self, given: Mapping[str, str], settings: Mapping[str, str]) -> None:
        self._settings = settings
        known = {name.lower(): name for name in (*OPTION_NAMES, *OLD_NAMES)}
        self._given: dict[str, str] = {}
        self._of_client: dict[str, str] = {}
        self._of_storage: dict[str, str] = {}
        for name, value in given.items():
            lower = name.lower()
            if lower in known:
                self._given[known[lower]] = str(value)
            elif lower == _ISOLATION_OF_CONSUMER:
                self._given.setdefault("isolationLevel", value)
            elif lower.startswith(PREFIX):
                self._of_client[name] = value
            elif lower.startswith(HADOOP):
                self._of_storage[lower] = value
            else:
                close = difflib.get_close_matches(lower, known, 1)
                hint = f" Did you mean {known[close[0]]}?" if close else ""
                raise InvalidOption(f"The source barnabas has no option {name}.{hint}")
        self._corrupt_column = CORRUPT_COLUMN
        for old, new in OLD_NAMES.items():
            if old in self._given:
                self._rename(old, new)

    def _rename(self, old: str, new: str) -> None:
        if new in self._given:
            raise InvalidOption(f"{old} is the old name of {new}: give only {new}.")
        value = self._given.pop(old)
        if old == "onCorrupt":
            if value.strip().lower() not in _OLD_MODES:
                raise InvalidOption(f"{old} is one of {', '.join(_OLD_MODES)}, not {value!r}.")
            value = _OLD_MODES[value.strip().lower()]
            if value == Mode.PERMISSIVE.value:
                self._corrupt_column = OLD_CORRUPT_COLUMN
        self._given[new] = value
        warn_of_old(f"the option {old}", f"{new}={value}")

    def given_of(self, *names: str) -> list[str]:
        return [name for name in names if name in self._given]

    def parse(self, start: int = EARLIEST) -> ReadOptions:
        default = ReadOptions(paths=())
        self._zone = self._parse_zone()
        size = self._size
        client = self._client()
        return ReadOptions(
            paths=() if client is not None else self._paths(),
            client=client,
            storage=self._storage() if client is None else None,
            topics=self._topics(),
            start=self._bound("starting", start),
            end=self._bound("ending", LATEST),
            no_such_time=self._choice("startingOffsetsByTimestampStrategy", default.no_such_time),
            isolation_level=self._choice("isolationLevel", default.isolation_level),
            read_up_to=self._choice("readUpTo", default.read_up_to),
            level=self._choice("level", default.level),
            mode=self._choice("mode", default.mode),
            corrupt_column=self._corrupt_column,
            fail_on_data_loss=self._flag("failOnDataLoss", default.fail_on_data_loss),
            include_headers=self._flag("includeHeaders", default.include_headers),
            max_partition_bytes=size("maxPartitionBytes", default.max_partition_bytes),
            open_cost_bytes=size("openCostInBytes", default.open_cost_bytes, 0),
            min_partitions=self._number("minPartitions"),
            chunk_bytes=size("chunkBytes", default.chunk_bytes, 4096, _MOST_BYTES),
            max_batch_bytes=size("maxBatchBytes", default.max_batch_bytes, 1, _MOST_BYTES),
            max_bytes_per_trigger=size("maxBytesPerTrigger", None),
            max_offsets_per_trigger=self._number("maxOffsetsPerTrigger"),
            max_records_per_partition=self._number("maxRecordsPerPartition"),
        )

    def _client(self) -> ClientSettings | None:
        """
        How to reach a broker, if that is what is to be read. A path counts more than its address.

        Raises:
            InvalidOption: a file of certificates is missing. A connection would be tried again.
        """
        names = {name.lower() for name in self._of_client}
        if self.given_of("path", "paths") or BOOTSTRAP not in names:
            no_use = self.given_of(*_OF_A_BROKER)
            if no_use:
                raise InvalidOption(f"{no_use[0]} is for reads from a broker ({BOOTSTRAP}).")
            return None
        no_use = [*self.given_of(*_OF_FILES), *self._of_storage]
        if no_use:
            raise InvalidOption(
                f"{no_use[0]} is for reads of files: a broker says where its records end, and not"
                " how many bytes they take."
            )
        level = self._choice("level", RowLevel.RECORDS)
        if level is not RowLevel.RECORDS:
            raise InvalidOption(f"level={level.value} is for reads of files, load(directory).")
        client = parse_client(self._of_client, READER)
        for file in (client.tls.ca_file, client.tls.key_file) if client.tls is not None else ():
            if file is not None and not Path(file).is_file():
                raise InvalidOption(
                    f"There is no file {file}, which the options of TLS name: the driver and every"
                    " worker of Spark need it."
                )
        return client

    def _storage(self) -> StorageOptions | None:
        if not self._of_storage and not self._settings:
            return None
        return StorageOptions.of(self._of_storage, self._settings)

    def _paths(self) -> tuple[str, ...]:
        paths = [path.strip() for path in self._given.get("path", "").split(",")]
        if "paths" in self._given:
            example = '["/data/1", "/data/2"]'
            several = self._json("paths", example)
            if not isinstance(several, list) or not all(isinstance(each, str) for each in several):
                raise self._bad_json("paths", example)
            paths = [*several, *(paths if "path" in self._given else ())]
        if not all(paths) or not paths:
            raise InvalidOption(
                "The source barnabas needs a path: load(directory), with a log directory of a"
                " broker; load([one, another]) takes several. Or it needs the address of a broker,"
                f" {BOOTSTRAP}."
            )
        return tuple(dict.fromkeys(paths))

    def _topics(self) -> TopicSelection:
        given = self.given_of("subscribe", "subscribePattern", "assign")
        if len(given) > 1:
            raise InvalidOption(f"Only one of {', '.join(given)} can be given.")
        if given == ["subscribe"]:
            names = [name.strip() for name in self._given["subscribe"].split(",")]
            return TopicSelection(names=frozenset(filter(None, names)))
        if given == ["subscribePattern"]:
            try:
                return TopicSelection(pattern=re.compile(self._given["subscribePattern"]))
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
            except (AttributeError, TypeError, ValueError) as error:
                raise self._bad_json("assign", '{"topic": [0, 1]}') from error
            return TopicSelection(partitions=frozenset(partitions))
        return TopicSelection()

    def _bound(self, which: str, default: int) -> ReadBound:
        """
        The time of all partitions counts before that of single ones, and that before offsets, as in
        the connector.
        """
        for_all = f"{which}Timestamp"
        if for_all in self._given:
            return ReadBound(timestamp_ms=self._time(for_all, self._given[for_all]))
        by_timestamp = f"{which}OffsetsByTimestamp"
        if by_timestamp in self._given:
            times = self._per_partition(by_timestamp)
            return ReadBound(
                default,
                timestamps_ms={
                    partition: self._time(by_timestamp, time) for partition, time in times.items()
                },
            )
        name = f"{which}Offsets"
        text = self._given.get(name, "").strip()
        if not text:
            return ReadBound(default)
        words = {"earliest": EARLIEST, "latest": LATEST}
        if text.lower() in words:
            bound = ReadBound(words[text.lower()])
        else:
            bound = ReadBound(default, self._offsets(name))
        self._check(name, bound)
        return bound

    @staticmethod
    def _check(name: str, bound: ReadBound) -> None:
        offsets = {
            offset for offset in (bound.offset, *bound.offsets.values()) if offset is not None
        }
        if offsets and min(offsets) < EARLIEST:
            raise InvalidOption(
                f"{name} has the offset {min(offsets)}: an offset is at least 0, or"
                f" {EARLIEST} for earliest, {LATEST} for latest."
            )
        if EARLIEST in offsets and name == "endingOffsets":
            raise InvalidOption(f"{name} cannot be earliest, {EARLIEST}: there would be no rows.")

    def _offsets(self, name: str) -> dict[TopicPartition, int]:
        try:
            return {
                partition: int(offset) for partition, offset in self._per_partition(name).items()
            }
        except (TypeError, ValueError) as error:
            raise self._bad_json(name, _EXAMPLE) from error

    def _per_partition(self, name: str) -> dict[TopicPartition, Any]:
        try:
            return {
                TopicPartition(topic, int(partition)): value
                for topic, numbers in self._json(name, _EXAMPLE).items()
                for partition, value in numbers.items()
            }
        except (AttributeError, TypeError, ValueError) as error:
            raise self._bad_json(name, _EXAMPLE) from error

    def _json(self, name: str, example: str) -> Any:
        try:
            return json.loads(self._given[name])
        except ValueError as error:
            raise self._bad_json(name, example) from error

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

    def _number(self, name: str) -> int | None:
        text = self._given.get(name)
        if text is None:
            return None
        if not re.fullmatch(r"\s*[0-9]+\s*", text) or int(text) < 1:
            raise InvalidOption(f"{name} is a number of at least 1, not {text!r}.")
        return int(text)

    def _size(self, name: str, default: Any, at_least: int = 1, at_most: int = LONG_MAX) -> Any:
        text = self._given.get(name)
        if text is None:
            return default
        with suppress(ValueError):
            size = parse_size(text)
            if at_least <= size <= at_most:
                return size
        most = " and at most 1g" if at_most == _MOST_BYTES else ""
        raise InvalidOption(
            f"{name} is a size of at least {at_least}{most}, as in 64m or 67108864, not {text!r}."
        )

    def _time(self, name: str, given: Any) -> int:
        with suppress(ValueError):
            return parse_time(str(given), self._zone)
        raise InvalidOption(
            f"{name} takes times as in 2026-01-31T12:00:00Z or 2026-01-31 12:00:00, or ms since"
            f" 1970, not {given!r}."
        )

    def _parse_zone(self) -> tzinfo:
        name = self._given.get("timeZone", "UTC")
        try:
            return parse_zone(name)
        except ValueError as error:
            raise InvalidOption(
                f"timeZone is a zone as in UTC, +01:00 or Europe/Berlin, not {name!r}."
            ) from error


def warn_of_old(old: str, new: str) -> None:
    """
    Warn that *old* is the name of something in the version before.
    """
    # Each is said once in a process: that is how Python filters warnings of one line.
    warnings.warn(
        f"{old} of the source barnabas is now {new}; the next version does not know it any more",
        FutureWarning,
        stacklevel=2,
    )
