from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import sys
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from barnabas.server.cli import EXIT_USAGE
from barnabas.server.http.json_api import Operation
from barnabas.testing import Broker
from barnabas.testing.control.api import OPERATIONS
from barnabas.testing.defaults import DEFAULTS
from tests.support.broker_process import answers, wait_for
from tests.support.commands import BARNABAS, output_of, run
from tests.support.control_client import JSON, Control, ControlledBroker
from tests.support.maven import PrerequisiteMissing

pytestmark = pytest.mark.interop

DAY_MS = 86_400_000
PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()


@pytest.fixture(scope="module")
def running() -> Iterator[ControlledBroker]:
    running = ControlledBroker()
    yield running
    running.close()


@pytest.fixture
def control(running: ControlledBroker) -> Iterator[Control]:
    """
    The control of a broker in its initial state, except for the time.
    """
    control = running.control
    yield control
    if not control.get("/v1/broker")["running"]:
        control.post("/v1/broker/start")
    control.post("/v1/disk/heal")
    control.ask("DELETE", "/v1/faults")
    control.ask("DELETE", "/v1/chaos")
    for topic in control.get("/v1/topics")["topics"]:
        control.ask("DELETE", f"/v1/topics/{topic['name']}")


def create(control: Control, name: str = "orders", **fields: object) -> None:
    assert 201 == control.ask("PUT", f"/v1/topics/{name}", fields).status


def append(control: Control, *values: str, topic: str = "orders") -> None:
    control.post(f"/v1/topics/{topic}/records", records=[{"value": value} for value in values])


def values(control: Control, topic: str = "orders") -> list[str]:
    return [record["value"] for record in control.get(f"/v1/topics/{topic}/records")["records"]]


def produce(bootstrap: str, value: str, **options: object) -> KafkaError | None:
    errors: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        errors.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "retry.backoff.ms": 10, **options})
    producer.produce("orders", value, on_delivery=delivered)
    assert 0 == producer.flush(30)
    (error,) = errors
    return error


def commit(bootstrap: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
    consumer.close()


# What the paths do


def test_control_root_lists_all_paths(control: Control) -> None:
    listed = control.get("/")

    assert [(entry["method"], entry["path"]) for entry in listed] == [
        (operation.method, operation.path) for operation in OPERATIONS
    ]


def test_control_defaults_are_those_of_a_test_broker(
    running: ControlledBroker, control: Control
) -> None:
    create(control)
    commit(running.bootstrap)

    expected = int(DEFAULTS["offsets.topic.num.partitions"])
    assert expected == control.get("/v1/topics/__consumer_offsets")["partitions"]


def test_control_reports_the_bootstrap_address(running: ControlledBroker, control: Control) -> None:
    assert answers(running.port)
    assert {
        "running": True,
        "bootstrap_servers": f"127.0.0.1:{running.port}",
        "listeners": {"PLAINTEXT": f"127.0.0.1:{running.port}"},
    } == control.get("/v1/broker")


def test_advancing_the_clock_by_eight_days_deletes_records(control: Control) -> None:
    create(control, config={"retention.ms": 7 * DAY_MS})
    append(control, "one", "two")
    before = control.get("/v1/clock")["now_ms"]

    after = control.post("/v1/clock/advance", days=7, hours=23, minutes=60)

    assert 0 <= after["now_ms"] - before - 8 * DAY_MS < 60_000
    assert after["now"].endswith("+00:00")
    assert [] == values(control)


def test_fault_applies_as_often_as_requested(running: ControlledBroker, control: Control) -> None:
    create(control)
    fault = control.post(
        "/v1/faults", kind="fail", api="Produce", error="NOT_LEADER_OR_FOLLOWER", times=2
    )
    number = fault["id"]

    assert produce(running.bootstrap, "one") is None

    expected = {
        "id": number,
        "kind": "fail",
        "api": "Produce",
        "error": "NOT_LEADER_OR_FOLLOWER",
        "times": 2,
    }
    assert expected | {"count": 0} == fault
    assert expected | {"count": 2} == control.get(f"/v1/faults/{number}")
    assert [expected | {"count": 2}] == control.get("/v1/faults")["faults"]


def test_fault_is_limited_to_a_client_and_a_topic(
    running: ControlledBroker, control: Control
) -> None:
    create(control)
    for field, value in (("client_id", "another"), ("topic", "others")):
        control.post(
            "/v1/faults",
            kind="fail",
            api="Produce",
            error="TOPIC_AUTHORIZATION_FAILED",
            **{field: value},
        )

    assert produce(running.bootstrap, "one") is None
    refused = produce(running.bootstrap, "two", **{"client.id": "another"})

    assert refused is not None
    assert KafkaError.TOPIC_AUTHORIZATION_FAILED == refused.code()
    assert ["one"] == values(control)


@pytest.mark.parametrize("path", ["/v1/faults/{id}", "/v1/faults"])
def test_removed_fault_no_longer_applies(
    running: ControlledBroker, control: Control, path: str
) -> None:
    create(control)
    fault = control.post("/v1/faults", kind="close", api="Produce")

    assert (204, None) == control.ask("DELETE", path.format(**fault))

    assert produce(running.bootstrap, "one") is None
    assert {"faults": []} == control.get("/v1/faults")
    assert 404 == control.ask("GET", f"/v1/faults/{fault['id']}").status


@pytest.mark.parametrize("kind", ["delay", "throttle", "drop", "hang"])
def test_every_kind_of_fault_can_be_requested(control: Control, kind: str) -> None:
    seconds = {"seconds": 0.5} if kind in ("delay", "throttle") else {}

    assert kind == control.post("/v1/faults", kind=kind, api="Fetch", **seconds)["kind"]


def test_chaos_can_be_started_and_stopped(running: ControlledBroker, control: Control) -> None:
    create(control)
    begun = control.post("/v1/chaos", seed=7, one_in=1)
    produce(running.bootstrap, "one", **{"message.timeout.ms": 1000})

    shown = control.get("/v1/chaos")
    ended = control.ask("DELETE", "/v1/chaos").content

    assert {"seed": 7, "schedule": []} == begun
    assert shown["schedule"]
    assert shown["schedule"] == ended["schedule"][: len(shown["schedule"])]
    assert 404 == control.ask("GET", "/v1/chaos").status
    assert produce(running.bootstrap, "two") is None


def test_topics_are_created_listed_and_deleted(control: Control) -> None:
    create(control, partitions=3, config={"cleanup.policy": "compact", "segment.ms": 1000})
    create(control, "payments")

    assert [
        {"name": "orders", "partitions": 3},
        {"name": "payments", "partitions": 1},
    ] == control.get("/v1/topics")["topics"]
    assert {"name": "orders", "partitions": 3} == control.get("/v1/topics/orders")
    assert 204 == control.ask("DELETE", "/v1/topics/orders").status
    assert 404 == control.ask("GET", "/v1/topics/orders").status


def test_records_have_keys_headers_timestamps_and_partitions(control: Control) -> None:
    create(control, partitions=2, config={"message.timestamp.before.max.ms": 1 << 62})
    headers = [{"name": "by", "value": "land"}, {"name": "by", "value": None}]

    appended = control.post(
        "/v1/topics/orders/records",
        records=[
            {"key": "å", "value": "1", "timestamp": 1000, "headers": headers, "partition": 1},
            {"key": "å", "value": None, "partition": 1},
        ],
    )

    assert {"appended": 2} == appended
    found = control.get("/v1/topics/orders/records")
    first, second = found["records"]
    assert {
        "partition": 1,
        "offset": 0,
        "timestamp": 1000,
        "key": "å",
        "value": "1",
        "headers": headers,
    } == first
    assert (1, "å", None) == (second["offset"], second["key"], second["value"])
    assert found["next"] is None
    assert [] == control.get("/v1/topics/orders/records?partition=0")["records"]


def test_binary_values_are_returned_in_base64(control: Control) -> None:
    create(control)
    content = b64encode(b"\xff\x00").decode()
    header = {"name": "h", "value_base64": content}
    control.post(
        "/v1/topics/orders/records",
        records=[{"key": "text", "value_base64": content, "headers": [header]}],
    )

    (record,) = control.get("/v1/topics/orders/records")["records"]
    (encoded,) = control.get("/v1/topics/orders/records?base64=true")["records"]

    assert ("text", content, [header]) == (
        record["key"],
        record["value_base64"],
        record["headers"],
    )
    assert "value" not in record
    assert b64encode(b"text").decode() == encoded["key_base64"]


def test_records_are_returned_page_by_page(control: Control) -> None:
    create(control)
    append(control, *map(str, range(25)))
    seen: list[str] = []
    start: int | None = 0
    pages = 0

    while start is not None:
        page = control.get(f"/v1/topics/orders/records?limit=10&start={start}")
        seen += [record["value"] for record in page["records"]]
        start = page["next"]
        pages += 1

    assert (3, [*map(str, range(25))]) == (pages, seen)


def test_page_ends_before_the_response_is_too_large(control: Control) -> None:
    create(control, config={"max.message.bytes": 32 << 20})
    for letter in "abcd":
        append(control, letter * (6 << 20))

    page = control.get("/v1/topics/orders/records")

    assert (["a", "b"], 2) == ([record["value"][0] for record in page["records"]], page["next"])


def test_records_can_be_limited_to_committed_ones(
    running: ControlledBroker, control: Control
) -> None:
    create(control)
    producer = Producer({"bootstrap.servers": running.bootstrap, "transactional.id": "t"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("orders", b"lost")
    producer.flush(30)
    producer.abort_transaction(30)

    assert ["lost"] == values(control)
    assert [] == control.get("/v1/topics/orders/records?committed=true")["records"]


def test_segments_are_listed_with_their_reasons(control: Control) -> None:
    create(control, partitions=2)
    append(control, "one")

    segments = control.get("/v1/topics/orders/segments")["segments"]

    assert [(0, 0, True), (1, 0, True)] == [
        (segment["partition"], segment["base_offset"], segment["is_active"]) for segment in segments
    ]
    assert "orders-1" in control.get("/v1/topics/orders/explain?partition=1")["text"]


def test_groups_are_listed_with_members_offsets_and_lag(
    running: ControlledBroker, control: Control
) -> None:
    create(control)
    append(control, "one", "two")
    consumer = Consumer(
        {
            "bootstrap.servers": running.bootstrap,
            "group.id": "a/b",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    message = consumer.poll(30)
    assert message is not None
    consumer.commit(message=message, asynchronous=False)

    group = control.get("/v1/groups/a/b")
    consumer.close()

    assert ("a/b", "Stable", 1) == (group["id"], group["state"], group["lag"])
    assert [{"topic": "orders", "partition": 0, "offset": 1, "lag": 1}] == group["offsets"]
    assert [[{"topic": "orders", "partition": 0}]] == [
        member["partitions"] for member in group["members"]
    ]
    assert ["a/b"] == [group["id"] for group in control.get("/v1/groups")["groups"]]
    assert (404, "there is no group b: GET /v1/groups lists all") == control.error(
        "GET", "/v1/groups/b"
    )


def test_stopped_broker_can_be_started_again(running: ControlledBroker, control: Control) -> None:
    create(control)
    append(control, "one")
    port = running.port

    assert not control.post("/v1/broker/stop")["running"]

    assert not answers(port)
    assert (
        409,
        "the broker is stopped: POST /v1/broker/start continues with the same data",
    ) == control.error("GET", "/v1/topics")
    assert control.post("/v1/broker/start")["running"]
    assert answers(port)
    assert control.post("/v1/broker/restart")["running"]
    assert ["one"] == values(control)


def test_power_loss_discards_unsynced_data(control: Control) -> None:
    """
    A kill loses nothing.
    """
    create(control, "safe", config={"flush.messages": 1})
    create(control)
    append(control, "one", topic="safe")
    append(control, "one")

    assert not control.post("/v1/broker/kill")["running"]
    control.post("/v1/broker/start")
    assert (["one"], ["one"]) == (values(control, "safe"), values(control))

    append(control, "two")
    assert not control.post("/v1/broker/power-loss", keep="nothing")["running"]
    control.post("/v1/broker/start")
    assert ["one"] == values(control, "safe")
    assert "two" not in values(control)


@pytest.mark.parametrize("keep", ["everything", 7])
def test_power_loss_keeps_the_requested_part_of_unsynced_data(
    control: Control, keep: object
) -> None:
    create(control)
    append(control, "one")

    control.post("/v1/broker/power-loss", keep=keep)
    control.post("/v1/broker/start")

    assert values(control) in ([["one"]] if keep == "everything" else [[], ["one"]])


def test_disk_can_be_failed_and_repaired(control: Control) -> None:
    """
    As with a real disk, the log directory stays offline until the next start.
    """
    create(control)
    control.post("/v1/disk/fail", error="ENOSPC", only=["write"], under="orders-0", forever=True)

    status, sentence = control.error(
        "POST", "/v1/topics/orders/records", {"records": [{"value": "one"}]}
    )

    assert 409 == status
    assert sentence.startswith("orders-0 refuses the records")
    control.post("/v1/disk/heal")
    control.post("/v1/broker/kill")
    control.post("/v1/broker/start")
    append(control, "two")
    assert ["two"] == values(control)


def test_disk_can_be_made_slow_and_corrupted(control: Control) -> None:
    create(control)
    append(control, "one")

    rot = control.post("/v1/disk/rot", pattern="orders-0/*.log", seed=1)

    assert rot["path"].endswith("orders-0/00000000000000000000.log")
    assert 0 <= rot["bit"] < 8
    control.post("/v1/disk/delay", seconds=0.001, only=["write", "sync"])
    assert (404, "no file that matches *.nothing has any bytes") == control.error(
        "POST", "/v1/disk/rot", {"pattern": "*.nothing"}
    )


def test_broker_log_is_returned(control: Control) -> None:
    assert any("listening on PLAINTEXT" in line for line in control.get("/v1/log")["lines"])


# What is refused


FAULT = {"kind": "fail", "api": "Produce", "error": "NOT_COORDINATOR"}


INVALID: dict[str, list[tuple[object, str | None]]] = {
    "POST /v1/clock/advance": [
        ({"day": 8}, "there is no field day; did you mean days?"),
        ({"days": "8"}, 'days is a number, not "8"'),
        ({"days": True}, "days is a number, not true"),
        ({"days": None}, "days is a number, not null"),
        ({"hours": -1}, "the clock moves forward only, not by -1 day, 23:00:00"),
        ({"days": 1e300}, "the clock ends with the year 9999"),
        ({"days": 3e6}, "the clock ends with the year 9999"),
        ([], "the body is an object, not []"),
        (b'{"days": NaN}', "the body is not JSON: NaN is not a number of JSON"),
    ],
    "POST /v1/broker/stop": [({"now": True}, "there is no field now (there are none)")],
    "POST /v1/broker/power-loss": [
        ({"keep": "some"}, 'keep is "nothing" or "everything" or a whole number, not "some"')
    ],
    "POST /v1/faults": [
        ({}, None),
        ({"kind": "drop"}, "the field api is missing: a text"),
        (FAULT | {"api": "Produc"}, "there is no API Produc; did you mean Produce?"),
        (
            FAULT | {"error": "NOT_LEADER"},
            "there is no error NOT_LEADER; did you mean NOT_LEADER_OR_FOLLOWER?",
        ),
        ({"kind": "fail", "api": "Produce"}, "a fault of the kind fail needs the field error"),
        (FAULT | {"seconds": 1}, "a fault of the kind fail has no field seconds"),
        ({"kind": "delay", "api": "Produce"}, "a fault of the kind delay needs the field seconds"),
        ({"kind": "delay", "api": "Produce", "seconds": -1}, "seconds is at least 0, not -1"),
        (FAULT | {"times": 0}, "times is at least 1, not 0"),
        (FAULT | {"times": 1.5}, "times is a whole number or null, not 1.5"),
        (FAULT | {"times": True}, "times is a whole number or null, not true"),
    ],
    "POST /v1/chaos": [({"seed": 1, "one_in": 0}, "one_in is at least 1, not 0")],
    "PUT /v1/topics/a%20b": [({}, None)],
    "PUT /v1/topics/new": [
        ({"partitions": 0}, None),
        ({"partitions": 1 << 40}, None),
        ({"config": {"retention": 1}}, None),
        (
            {"config": {"retention.ms": [1]}},
            "config.retention.ms is a text or a whole number or a number or true or false, not [1]",
        ),
    ],
    "POST /v1/topics/orders/records": [
        ({}, "the field records is missing: a list"),
        ({"records": ["one"]}, 'records[0] is an object, not "one"'),
        (
            {"records": [{"value": "1"}, {"valu": "2"}]},
            "records[1]: there is no field valu; did you mean value?",
        ),
        ({"records": [{"value": 1}]}, "records[0].value is a text or null, not 1"),
        (
            {"records": [{"value": "1", "headers": [{"value": "x"}]}]},
            "records[0].headers[0]: the field name is missing: a text",
        ),
        (
            {"records": [{"value": "1", "value_base64": "MQ=="}]},
            "there are both value and value_base64: one of them is enough",
        ),
        ({"records": [{"key_base64": "?"}]}, None),
        ({"records": [{"key": "\ud800"}]}, None),
        ({"records": [{"headers": [{"name": "\ud800"}]}]}, None),
        ({"records": [{"timestamp": 1 << 70}]}, None),
    ],
    "GET /v1/topics/orders/records?partition=x": [
        (None, 'partition is a whole number or null, not "x"')
    ],
    "GET /v1/topics/orders/records?committed=yes": [
        (None, 'committed is true or false, not "yes"')
    ],
    "GET /v1/topics/orders/records?limit=0": [(None, "limit is from 1 to 10000, not 0")],
    "GET /v1/topics/orders/records?limit=10001": [(None, "limit is from 1 to 10000, not 10001")],
    "GET /v1/topics/orders/records?start=-1": [(None, "start is at least 0, not -1")],
    "GET /v1/topics/orders/segments?partition=0": [
        (None, "there is no field partition (there are: start, limit)")
    ],
    "POST /v1/disk/fail": [
        ({"error": "ENOSP"}, "there is no error ENOSP; did you mean ENOSPC?"),
        ({"only": ["wirte"]}, None),
    ],
    "POST /v1/disk/delay": [({"seconds": 1000}, "seconds is from 0 to 60, not 1000")],
}
"""
Bodies that are answered with 400, and the sentence where it is ours.
"""
REFUSED: list[tuple[str, object, int, str | None]] = [
    ("GET /v1/faults/77", None, 404, "there is no fault 77: GET /v1/faults lists all"),
    ("DELETE /v1/faults/x", None, 404, "there is no fault x: GET /v1/faults lists all"),
    ("DELETE /v1/chaos", None, 404, "there is no chaos: POST /v1/chaos begins it"),
    ("PUT /v1/topics/orders", {}, 409, None),
    ("GET /v1/topics/no", None, 404, None),
    ("DELETE /v1/topics/no", None, 404, None),
    ("POST /v1/topics/no/records", {"records": []}, 404, None),
    (
        "POST /v1/topics/orders/records",
        {"records": [{"partition": 5}]},
        404,
        "the topic orders has 1 partitions, not one 5",
    ),
    ("POST /v1/topics/compacted/records", {"records": [{"value": "1"}]}, 409, None),
    ("GET /v1/topics/orders/records?partition=5", None, 404, None),
    ("GET /v1/topics/orders/explain?partition=9", None, 404, None),
    ("GET /v1/nothing", None, 404, "there is no /v1/nothing: GET / lists all paths"),
    ("DELETE /v1/clock", None, 405, "/v1/clock takes GET, not DELETE"),
]


@pytest.mark.parametrize(
    ("operation", "body", "status", "sentence"),
    [
        *((each, body, 400, text) for each, cases in INVALID.items() for body, text in cases),
        *REFUSED,
    ],
)
def test_invalid_request_is_answered_with_the_reason(
    control: Control, operation: str, body: object, status: int, sentence: str | None
) -> None:
    create(control)
    if "compacted" in operation:
        create(control, "compacted", config={"cleanup.policy": "compact"})

    method, path = operation.split()
    refused = control.error(method, path, body)

    assert (status, sentence or refused[1]) == refused
    assert not re.match(r"\w+Error: ", refused[1]), "an error that nobody has thought of"


@pytest.mark.parametrize(
    "body", [b"{", b"\xff", b'{"days": 1' + b"0" * 5000 + b"}", b"[" * 100_000]
)
def test_body_that_is_not_json_is_refused(control: Control, body: bytes) -> None:
    status, sentence = control.error("POST", "/v1/clock/advance", body)

    assert 400 == status
    assert sentence.startswith("the body is not JSON: ")


@pytest.mark.parametrize(
    "content_type", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
@pytest.mark.parametrize("body", [None, b"{}"])
def test_cross_site_requests_change_nothing(
    control: Control, content_type: str | None, body: bytes | None
) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}

    status, content = control.ask("POST", "/v1/broker/stop", body, headers=headers)

    assert (415, True) == (status, control.get("/v1/broker")["running"])
    assert (
        "a POST needs the header Content-Type: application/json, also without a body"
        == content["error"]
    )


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("127.0.0.1:80", 200),
        ("[::1]:80", 200),
        ("evil.example", 403),
        ("evil.example:80", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example", 403),
        ("", 403),
    ],
)
def test_host_name_rebound_to_this_machine_is_refused(
    control: Control, host: str, status: int
) -> None:
    assert status == control.ask("GET", "/v1/broker", headers=JSON | {"Host": host}).status


def test_body_that_is_too_large_is_refused(control: Control) -> None:
    """
    By its announced length, or as soon as more has arrived.
    """
    headers = JSON | {"Content-Length": str((64 << 20) + 1)}

    assert (413, {"error": "a body has at most 64 MiB"}) == control.ask(
        "POST", "/v1/clock/advance", b"", headers=headers
    )
    assert control.get("/v1/broker")["running"]


def test_number_of_connections_is_limited(control: Control) -> None:
    idle = [socket.create_connection((control.host, control.port)) for _ in range(100)]
    try:
        connection = http.client.HTTPConnection(control.host, control.port, timeout=30)
        connection.request("GET", "/v1/broker")
        status = connection.getresponse().status
        connection.close()
    finally:
        for each in idle:
            each.close()

    assert 503 == status
    wait_for(lambda: control.ask("GET", "/").status == 200, "connections to be closed", 30)


def test_number_of_faults_is_limited(control: Control) -> None:
    for _ in range(1000):
        control.post("/v1/faults", **FAULT)

    assert (
        409,
        "there are 1000 faults: DELETE /v1/faults/ID or /v1/faults removes some",
    ) == control.error("POST", "/v1/faults", FAULT)
    control.ask("DELETE", "/v1/faults")
    control.post("/v1/faults", **FAULT)


# The command


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_the_broker_and_the_control_server(number: signal.Signals) -> None:
    running = ControlledBroker()
    try:
        port = running.port

        status, log = running.stop(number)
    finally:
        running.close()

    assert 0 == status, log
    assert f"{number.name}: stopping" in log
    assert "broker: stopped in" in log
    assert f"test control on {running.url}" in log
    assert "Traceback" not in log
    assert not answers(port)


def test_control_broker_takes_the_configuration_of_serve(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("offsets.topic.num.partitions=3\nlog.retention.hours=1\n")
    running = ControlledBroker(
        *("--config", str(properties), "--test-clock", "still"),
        *("--set", "listener.security.protocol.map=ONE:PLAINTEXT,TWO:PLAINTEXT"),
        *("--set", "listeners=ONE://127.0.0.1:0,TWO://127.0.0.1:0"),
        *("--set", "advertised.listeners=ONE://localhost:0,TWO://broker:29092"),
    )
    try:
        broker = running.control.get("/v1/broker")
        port = running.port
        first = running.control.get("/v1/clock")
        create(running.control)
        append(running.control, "one")
        running.control.post("/v1/clock/advance", hours=2)
        left = values(running.control)
        again = running.control.post("/v1/broker/restart")
        second = running.control.get("/v1/clock")
        commit(running.bootstrap)
        offsets = running.control.get("/v1/topics/__consumer_offsets")
    finally:
        running.close()

    assert 3 == offsets["partitions"]
    assert {"ONE": f"localhost:{port}", "TWO": "broker:29092"} == broker["listeners"]
    assert broker["listeners"] == again["listeners"]
    assert [] == left
    assert 2 * 3_600_000 == second["now_ms"] - first["now_ms"]


def test_data_directory_keeps_the_data(tmp_path: Path) -> None:
    """
    It lies on a real disk, which cannot be made to fail.
    """
    running = ControlledBroker("--data-dir", str(tmp_path))
    try:
        create(running.control)
        append(running.control, "one")
        refused = [
            running.control.error("POST", path)
            for path in ("/v1/disk/heal", "/v1/broker/kill", "/v1/broker/power-loss")
        ]
        status, log = running.stop()
    finally:
        running.close()

    sentence = (
        "the broker is in a directory, and this needs its files in memory: leave out --data-dir"
        " and log.dirs"
    )
    assert [(409, sentence)] * 3 == refused
    assert 0 == status, log
    with Broker(tmp_path) as broker:
        assert [b"one"] == [record.value for record in broker.topic("orders").records()]


def refused(*arguments: str) -> str:
    """
    The error of a misused command. It runs in a process because it changes logging and garbage
    collection.
    """
    done = run(*BARNABAS, "serve", *arguments)
    assert (EXIT_USAGE, "") == (done.returncode, done.stdout)
    return done.stderr


def test_control_address_reachable_from_outside_requires_a_host_name() -> None:
    said = refused("--test-control", "0.0.0.0:8099")

    assert "0.0.0.0:8099 is not on the loopback interface" in said
    assert "--test-control-host NAME allows that" in said


@pytest.mark.parametrize("alone", [["--test-control-host", "kafka"], ["--test-clock", "still"]])
def test_control_options_require_a_control_address(alone: list[str]) -> None:
    assert "need --test-control" in refused(*alone)


def test_control_accepts_requests_for_the_allowed_host_names() -> None:
    running = ControlledBroker("--test-control-host", "Kafka", address="0.0.0.0:0")
    try:
        control = Control("127.0.0.1", running.control.port)
        statuses = [
            control.ask("GET", "/v1/broker", headers={"Host": host}).status
            for host in ("kafka:8099", "127.0.0.1:8099", "others:8099")
        ]
    finally:
        running.close()

    assert [200, 200, 403] == statuses


def test_invalid_address_is_refused() -> None:
    said = refused("--test-control", "localhost")

    assert "localhost: an address looks like 127.0.0.1:8099, or 8099 alone" in said


def test_address_in_use_aborts_the_start(running: ControlledBroker) -> None:
    with pytest.raises(AssertionError, match=r"cannot listen on http://127\.0\.0\.1:\d+: Address"):
        ControlledBroker(address=str(running.control.port))


def test_missing_extra_is_reported_with_its_install_command() -> None:
    program = (
        "import sys, importlib.util as util; found = util.find_spec;"
        " util.find_spec = lambda name, *rest: None if name == 'uvicorn' else found(name, *rest);"
        " from barnabas.server.cli import main;"
        " sys.exit(main(['serve', '--test-control', '0']))"
    )

    done = run(sys.executable, "-c", program)

    assert EXIT_USAGE == done.returncode
    assert "uvicorn cannot be found: pip install 'barnabas[http]'" in done.stderr


# The page


def test_documented_commands_work(running: ControlledBroker, control: Control) -> None:
    if shutil.which("curl") is None:
        raise PrerequisiteMissing("no curl on the path")
    (commands,) = re.findall(r"```sh\n(json=.*?)```", PAGE, re.DOTALL)

    said = output_of(
        *("bash", "-e", "-c", commands.replace("curl ", "curl --silent --fail-with-body ")),
        env=os.environ | {"control": running.url},
    )

    assert {"records": [], "next": None} == json.loads(said.splitlines()[-1])
    assert ["Produce"] == [fault["api"] for fault in control.get("/v1/faults")["faults"]]


def test_documentation_lists_every_path_and_field() -> None:
    rows = re.findall(r"^\| `(GET|POST|PUT|DELETE) (/v1/\S*)` \|([^|]*)\|", PAGE, re.MULTILINE)

    assert [
        (operation.method, operation.path.replace(":path", ""), _fields(operation))
        for operation in OPERATIONS
    ] == [(method, path, set(re.findall(r"`(\w+)`", cell))) for method, path, cell in rows]


def _fields(operation: Operation) -> set[str]:
    return {field.name for field in fields(operation.shape)}
