"""
How rows are written to a broker.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.client.settings import (
    PREFIX,
    WRITER,
    ClientSettings,
    number,
    parse_client,
)
from barnabas.pipeline.errors import InvalidOption
from barnabas.protocol.compression import CompressionType

OPTION_NAMES: Final = (
    "topic",
    "includeHeaders",
    "transactionalIdPrefix",
    "checkpointLocation",
    "queryName",
)
_ACKS: Final = {"all": -1, "-1": -1, "1": 1}
_LARGEST_TIMEOUT_MS: Final = 2**31 - 1

DEFAULT_BATCH_BYTES: Final = 512 << 10
DEFAULT_TRANSACTION_TIMEOUT_MS: Final = 15 * 60 * 1000
"""The longest that brokers allow by default (``transaction.max.timeout.ms``)."""


@dataclass(frozen=True)
class WriteOptions:
    """
    Where rows go, and in what shape.
    """

    client: ClientSettings
    topic: str | None = None
    """Of all rows; None for what the column says."""
    with_headers: bool = True
    acks: int = -1
    idempotent: bool = True
    compression: CompressionType = CompressionType.NONE
    batch_bytes: int = DEFAULT_BATCH_BYTES
    """Of the records of one batch, unless a single one is larger."""
    most_record_bytes: int | None = None
    transaction_timeout_ms: int = DEFAULT_TRANSACTION_TIMEOUT_MS
    transactional_id_prefix: str | None = None
    """None for the id of the query, which stays the same over restarts from a checkpoint."""


def parse_write_options(given: Mapping[str, str]) -> WriteOptions:
    """
    Raises:
        InvalidOption: there is no such option, or its value makes no sense.
    """
    own = _own(given)
    client = parse_client(given, WRITER)
    others = client.others
    acks = others.get("acks", "all").lower()
    if acks not in _ACKS:
        raise InvalidOption(
            f"kafka.acks is all or 1, not {acks!r}: without an answer, no row that was refused"
            " could be named."
        )
    idempotent = _flag("kafka.enable.idempotence", others.get("enable.idempotence"), acks != "1")
    if idempotent and acks == "1":
        raise InvalidOption("kafka.enable.idempotence needs kafka.acks=all.")
    record_bytes = number(others, "max.request.size", 0, at_least=1) if _has_limit(others) else None
    timeout_ms = number(
        others, "transaction.timeout.ms", DEFAULT_TRANSACTION_TIMEOUT_MS, at_least=1000
    )
    return WriteOptions(
        client=client,
        topic=own.get("topic"),
        with_headers=_flag("includeHeaders", own.get("includeHeaders"), True),
        acks=_ACKS[acks],
        idempotent=idempotent,
        compression=_compression(others.get("compression.type", "none")),
        batch_bytes=number(others, "batch.size", DEFAULT_BATCH_BYTES, at_least=1),
        most_record_bytes=record_bytes,
        transaction_timeout_ms=min(timeout_ms, _LARGEST_TIMEOUT_MS),
        transactional_id_prefix=own.get("transactionalIdPrefix"),
    )


def _own(given: Mapping[str, str]) -> dict[str, str]:
    known = {name.lower(): name for name in OPTION_NAMES}
    own = {}
    for name, value in given.items():
        lower = name.lower()
        if lower in known:
            own[known[lower]] = str(value)
        elif lower in ("path", "paths"):
            raise InvalidOption(
                "The source barnabas writes to a broker, not to a path: give"
                " kafka.bootstrap.servers, and save() without a path."
            )
        elif not lower.startswith(PREFIX):
            close = difflib.get_close_matches(lower, known, 1)
            hint = f" Did you mean {known[close[0]]}?" if close else ""
            raise InvalidOption(f"A write of the source barnabas has no option {name}.{hint}")
    return own


def _has_limit(others: Mapping[str, str]) -> bool:
    return "max.request.size" in others


def _flag(name: str, text: str | None, default: bool) -> bool:
    if text is None:
        return default
    if text.strip().lower() not in ("true", "false"):
        raise InvalidOption(f"{name} is true or false, not {text!r}.")
    return text.strip().lower() == "true"


def _compression(name: str) -> CompressionType:
    for codec in CompressionType:
        if codec.name.lower() == name.lower():
            return codec
    names = ", ".join(codec.name.lower() for codec in CompressionType)
    raise InvalidOption(f"kafka.compression.type is one of {names}, not {name!r}.")
