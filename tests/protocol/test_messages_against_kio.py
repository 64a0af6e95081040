"""
Every version of every message against ``kio``, a codec that was generated from Kafka's own
definitions: what one of them writes, the other one reads.
"""

from __future__ import annotations

import dataclasses
import datetime
import io
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.codec.schema import ZERO_UUID, Message
from tests.support.messages import VERSIONS, messages, name_of, present_fields

EPOCH = datetime.datetime.fromtimestamp(0, tz=datetime.UTC)
MILLISECOND = datetime.timedelta(milliseconds=1)

# kio knows some numbers as what they stand for, which not all numbers do; it computes
# times in floating point, so that only whole seconds and short times come through.
DURATIONS = st.integers(-(2**40), 2**40)
MOMENTS = st.integers(0, 2**32).map((1000).__mul__)
NUMBERS = {
    **dict.fromkeys(("max_lifetime_ms", "renew_period_ms", "expiry_time_period_ms"), DURATIONS),
    **dict.fromkeys(
        (
            *("issue_timestamp", "expiry_timestamp", "max_timestamp"),
            *("issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms"),
        ),
        MOMENTS,
    ),
    "error_code": st.sampled_from([int(code) for code in ErrorCode]),
    "log_append_time_ms": st.just(-1) | MOMENTS,
    "retention_time_ms": DURATIONS,
    "session_lifetime_ms": DURATIONS,
    "transaction_start_time_ms": MOMENTS,
}


def kio_entity(cls: type[Message], version: int) -> Any:
    load = load_request_schema if cls.__name__.endswith("Request") else load_response_schema
    return load(cls.api.key, version)


def to_kio(message: Any, entity: Any, version: int) -> Any:
    """
    *message* as an *entity* of kio.

    Both declare the fields in the order of the wire; kio drops the units from their names.
    """
    ours = present_fields(type(message), version)
    theirs = dataclasses.fields(entity)
    values = {}
    for our, their in zip(ours, theirs, strict=True):
        assert our.name in (their.name, f"{their.name}_ms")
        nested = next(iter(entity_classes(their.type)), None)
        value = getattr(message, our.name)
        values[their.name] = converted(value, nested, their.metadata.get("kafka_type"), version)
    return entity(**values)


def entity_classes(hint: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(hint):
        yield hint
    for part in get_args(hint):
        yield from entity_classes(part)


def converted(value: Any, nested: Any, kind: str | None, version: int) -> Any:
    """
    *value* as kio has it, for a field of its type *kind* or of the class *nested*.
    """
    if value is None or value == ZERO_UUID:
        return None
    if isinstance(value, list):
        return tuple(converted(item, nested, kind, version) for item in value)
    if nested is not None:
        return to_kio(value, nested, version)
    if kind == "error_code":
        return ErrorCode(value)
    if kind == "datetime_i64":
        return None if value == -1 else EPOCH + value * MILLISECOND
    return value * MILLISECOND if kind in ("timedelta_i32", "timedelta_i64") else value


@pytest.mark.prove
@pytest.mark.parametrize(("cls", "version"), VERSIONS, ids=name_of)
@settings(max_examples=12)
@given(data=st.data())
def test_encoding_is_compatible_with_kio(
    data: st.DataObject, cls: type[Message], version: int
) -> None:
    entity = kio_entity(cls, version)
    message = data.draw(messages(cls, version, NUMBERS))
    theirs = to_kio(message, entity, version)

    with io.BytesIO() as out:
        entity_writer(entity)(out, theirs)
        encoded = out.getvalue()

    assert encoded == encode(message, version)
    assert message == decode(cls, version, encoded)
    assert (theirs, len(encoded)) == entity_reader(entity)(encode(message, version), 0)
