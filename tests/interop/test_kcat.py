"""
kcat, and with it the librdkafka of some years ago that Debian ships.
"""

from __future__ import annotations

import json

import pytest

from tests.interop.clients.base import CODECS
from tests.interop.conftest import needs_program
from tests.support.broker_process import BrokerProcess
from tests.support.commands import output_of
from tests.support.some import some


@pytest.mark.parametrize("codec", CODECS)
def test_kcat_reads_what_it_wrote(broker: BrokerProcess, topic: str, codec: str) -> None:
    """
    Into a topic that the first record creates, with keys and headers, and back from the start.
    """
    needs_program("kcat")
    lines = "".join(f"key-{n}:value-{n}\n" for n in range(1000))

    _kcat(broker, "-P", "-t", topic, "-K", ":", "-z", codec, "-H", "name=value", given=lines)
    read = _kcat(broker, "-C", "-t", topic, "-J", "-e", "-o", "beginning")

    records = [json.loads(line) for line in read.splitlines()]
    assert lines == "".join(f"{r['key']}:{r['payload']}\n" for r in records)
    assert list(range(1000)) == [r["offset"] for r in records]
    assert all(r["headers"] == ["name", "value"] for r in some(records))


def test_kcat_joins_a_group_and_goes_on_where_it_was(broker: BrokerProcess, topic: str) -> None:
    """
    The second run of a group starts at what the first one committed.
    """
    needs_program("kcat")
    settings = ("-X", "auto.offset.reset=earliest")
    _kcat(broker, "-P", "-t", topic, given="one\ntwo\n")

    first = _kcat(broker, "-G", f"{topic}-group", *settings, "-c", "2", topic)
    _kcat(broker, "-P", "-t", topic, given="three\n")
    second = _kcat(broker, "-G", f"{topic}-group", *settings, "-c", "1", topic)

    assert "one\ntwo\n" == first
    assert "three\n" == second


def test_kcat_lists_the_broker_and_its_topics(broker: BrokerProcess, topic: str) -> None:
    """
    The metadata shows one broker at the address that is advertised, and a leader for the topic.
    """
    needs_program("kcat")
    _kcat(broker, "-P", "-t", topic, given="one\n")

    listed = json.loads(_kcat(broker, "-L", "-J", "-t", topic))

    assert [broker.bootstrap] == [b["name"] for b in listed["brokers"]]
    [found] = listed["topics"]
    assert topic == found["topic"]
    assert [listed["brokers"][0]["id"]] == [p["leader"] for p in found["partitions"]]


def _kcat(broker: BrokerProcess, *arguments: str, given: str = "") -> str:
    return output_of("kcat", "-b", broker.bootstrap, "-q", *arguments, input=given)
