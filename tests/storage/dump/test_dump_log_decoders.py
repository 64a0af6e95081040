from __future__ import annotations

import struct
from pathlib import Path
from uuid import UUID

import pytest

from barnabas.protocol import consumer_protocol as consumers
from barnabas.protocol.codec.codec import encode
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.internal_topics import group_records as groups
from barnabas.protocol.internal_topics import remote_log_records as remote
from barnabas.protocol.internal_topics import share_state_records as share
from barnabas.protocol.internal_topics.metadata_records import (
    ClientQuotaRecord,
    EntityData,
    TopicRecord,
)
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from tests.support.dumping import KAFKAS, dump_log

OFFSETS, METADATA = "--offsets-decoder", "--cluster-metadata-decoder"
REMOTE, SHARE = "--remote-log-metadata-decoder", "--share-group-state-decoder"
SKIPPED = "Error at offset 5, skipping"
TOPIC_ID = UUID(int=1)
TOPIC_ID_TEXT = "AAAAAAAAAAAAAAAAAAAAAQ"


def decoded(directory: Path, decoder: str, key: bytes | None, value: bytes | None) -> str:
    """
    What is behind the metadata of a record at offset 5.
    """
    data = build_batch([SimpleRecord(1, key, value)], base_offset=5)
    return dump_log(directory, data, decoder).lines[1].partition(" headerKeys: [] ")[2]


def framed(message: Message, version: int = 0) -> bytes:
    return bytes((1, message.api.key, version)) + encode(message, version)


@pytest.mark.scenario(81)
def test_offsets_decoder_prints_a_committed_offset(tmp_path: Path) -> None:
    key = bytes.fromhex("0001 00026731 000174 00000002")
    value = bytes.fromhex("0003 000000000000002a 00000005 00016d 0000018bcfe56800")

    assert (
        'key: {"type":"1","data":{"group":"g1","topic":"t","partition":2}} '
        'payload: {"version":"3","data":{"offset":42,"leaderEpoch":5,"metadata":"m",'
        '"commitTimestamp":1700000000000}}'
    ) == decoded(tmp_path, OFFSETS, key, value)
    assert decoded(tmp_path, OFFSETS, key, None).endswith("} payload: <DELETE>")


def group(protocol_type: str, subscription: bytes) -> bytes:
    member = groups.MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/h",
        session_timeout=10,
        subscription=subscription,
        assignment=b"\0\1",
    )
    value = groups.GroupMetadataValue(
        protocol_type=protocol_type, generation=1, protocol=None, leader=None, members=[member]
    )
    return b"\0\1" + encode(value, 1)


SUBSCRIPTION = b"\0\1" + encode(consumers.ConsumerProtocolSubscription(topics=["t"]), 1)


@pytest.mark.parametrize(
    ("protocol_type", "subscription", "shown"),
    [
        ("consumer", SUBSCRIPTION, '{"topics":["t"],"userData":null,"ownedPartitions":[]}'),
        ("connect", SUBSCRIPTION, '"AAEAAAABAAF0/////wAAAAA="'),
        ("consumer", b"\0", '"AA=="'),
        (
            "consumer",
            b"\0\7" + SUBSCRIPTION[2:] + b"\0\0\0\7" + b"\0\1r",
            '{"topics":["t"],"userData":null,"ownedPartitions":[],"generationId":7,"rackId":"r"}',
        ),
    ],
    ids=["consumer", "another protocol", "broken", "a later version"],
)
def test_offsets_decoder_prints_members_of_classic_groups(
    protocol_type: str, subscription: bytes, shown: str, tmp_path: Path
) -> None:
    value = group(protocol_type, subscription)

    text = decoded(tmp_path, OFFSETS, b"\0\2\0\1g", value)

    assert f'"sessionTimeout":10,"subscription":{shown},"assignment":"AAE="' in text


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        (b"\0\x63", b"", "Unknown record type 99 at offset 5, skipping."),
        (b"\xff\xff", b"", "Unknown record type -1 at offset 5, skipping."),
        (b"\0", b"", f"{SKIPPED}. Could not read version from key's buffer."),
        (b"\0\2\0\1g", b"", f"{SKIPPED}. Could not read version from value's buffer."),
        (b"\0\2\0\1g", b"\0\x09", f"{SKIPPED}. Found an unknown record version 9 for 2 type"),
        (
            b"\0\2\0\2g",
            b"\0\0",
            "Error at offset 5, skipping. Could not read record with version 2 from key's buffer "
            "due to: Error reading byte array of 2 byte(s): only 1 byte(s) available.",
        ),
        (
            b"\0\2\xff\xff",
            b"\0\0",
            "Error at offset 5, skipping. Could not read record with version 2 from key's buffer "
            "due to: non-nullable field group was serialized as null.",
        ),
        (
            b"\0\1\0\1g\0\1t\0\0\0\0",
            b"\0\3\0",
            "Error at offset 5, skipping. Could not read record with version 3 from value's "
            "buffer due to: null.",
        ),
        (
            b"\0\2\0\1g",
            b"\0\0\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\x07",
            "Error at offset 5, skipping. Could not read record with version 0 from value's "
            "buffer due to: Tried to allocate a collection of size 7, but there are only 0 bytes "
            "remaining..",
        ),
    ],
)
def test_malformed_coordinator_records_are_reported(
    key: bytes, value: bytes, text: str, tmp_path: Path
) -> None:
    assert f"key: {text}" == decoded(tmp_path, OFFSETS, key, value)


def test_coordinator_record_without_a_key_is_reported(tmp_path: Path) -> None:
    """
    Kafka's tool terminates there.
    """
    dumped = dump_log(tmp_path, build_batch([SimpleRecord(1, None, b"x")]), SHARE)

    assert (
        f"{KAFKAS}java.lang.RuntimeException: Failed to decode message at offset 0 using the "
        "specified decoder (message had a missing key)\n"
    ) == dumped.err


def test_share_group_state_decoder_prints_share_group_records(tmp_path: Path) -> None:
    key = share.ShareSnapshotKey(group_id="g", topic_id=TOPIC_ID, partition=3)
    batch = share.StateBatch(first_offset=1, last_offset=2, delivery_state=4, delivery_count=1)
    value = share.ShareSnapshotValue(
        snapshot_epoch=1,
        state_epoch=2,
        leader_epoch=3,
        start_offset=4,
        delivery_complete_count=6,
        create_timestamp=7,
        write_timestamp=8,
        state_batches=[batch],
    )

    text = decoded(tmp_path, SHARE, b"\0\0" + encode(key, 0), b"\0\0" + encode(value, 0))

    assert (
        f'key: {{"type":"0","data":{{"groupId":"g","topicId":"{TOPIC_ID_TEXT}","partition":3}}}} '
        'payload: {"version":"0","data":{"snapshotEpoch":1,"stateEpoch":2,"leaderEpoch":3,'
        '"startOffset":4,"deliveryCompleteCount":6,"createTimestamp":7,"writeTimestamp":8,'
        '"stateBatches":[{"firstOffset":1,"lastOffset":2,"deliveryState":4,"deliveryCount":1}]}}'
    ) == text


QUOTA = ClientQuotaRecord(
    entity=[EntityData(entity_type="user", entity_name=None)],
    key='a"\\\n\x1f\x7f\u20ac',
    value=12345678.5,
    remove=False,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            framed(TopicRecord(name="t", topic_id=TOPIC_ID)),
            f'{{"type":"TOPIC_RECORD","version":0,"data":{{"name":"t","topicId":"{TOPIC_ID_TEXT}"}}}}',
        ),
        (
            framed(QUOTA),
            '{"type":"CLIENT_QUOTA_RECORD","version":0,"data":{"entity":[{"entityType":"user",'
            '"entityName":null}],"key":"a\\"\\\\\\n\\u001F\x7f\u20ac","value":1.23456785E7,'
            '"remove":false}}',
        ),
        (None, "Error at 5, skipping. Error while reading frame version"),
        (
            b"\0",
            "Error at 5, skipping. Could not deserialize metadata record with frame version 0. "
            "Note that upgrades from the preview release of KRaft in 2.8 to newer versions are "
            "not supported.",
        ),
        (
            b"\2",
            "Error at 5, skipping. Could not deserialize metadata record due to unknown frame "
            "version 2(only frame version 1 is supported)",
        ),
        (b"\1\x80\x80\x04\0", "Error at 5, skipping. Value for type was too large."),
        (
            b"\1\x63\0",
            "Error at 5, skipping. org.apache.kafka.common.errors.UnsupportedVersionException: "
            "Unknown metadata id 99",
        ),
        (b"\1\2\0\2", "Error at 5, skipping. Failed to deserialize record with type 2"),
        (
            framed(TopicRecord(name="t", topic_id=TOPIC_ID)) + b"\0",
            "Error at 5, skipping. Found 1 byte(s) of garbage after 2",
        ),
    ],
)
def test_cluster_metadata_decoder_prints_metadata_records(
    value: bytes | None, text: str, tmp_path: Path
) -> None:
    assert f"payload: {text}" == decoded(tmp_path, METADATA, None, value)


PARTITION = remote.TopicIdPartitionEntry(name="t", id=TOPIC_ID, partition=3)
SEGMENT = remote.RemoteLogSegmentIdEntry(topic_id_partition=PARTITION, id=UUID(int=2))
EPOCHS = [
    remote.SegmentLeaderEpochEntry(leader_epoch=2, offset=7),
    remote.SegmentLeaderEpochEntry(leader_epoch=1, offset=5),
]
SEGMENT_TEXT = (
    f"RemoteLogSegmentId{{topicIdPartition={TOPIC_ID_TEXT}:t-3, id=AAAAAAAAAAAAAAAAAAAAAg}}"
)


def segment(**changes: object) -> remote.RemoteLogSegmentMetadataRecord:
    facts: dict[str, object] = {
        "remote_log_segment_id": SEGMENT,
        "start_offset": 5,
        "end_offset": 9,
        "broker_id": 1,
        "max_timestamp_ms": 11,
        "event_timestamp_ms": 12,
        "segment_leader_epochs": EPOCHS,
        "segment_size_in_bytes": 13,
        "custom_metadata": b"xyz",
        "remote_log_segment_state": 1,
        "txn_index_empty": True,
    }
    return remote.RemoteLogSegmentMetadataRecord(**(facts | changes))  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            segment(),
            f"RemoteLogSegmentMetadata{{remoteLogSegmentId={SEGMENT_TEXT}, startOffset=5, "
            "endOffset=9, brokerId=1, maxTimestampMs=11, eventTimestampMs=12, "
            "segmentLeaderEpochs={1=5, 2=7}, segmentSizeInBytes=13, "
            "customMetadata=Optional[CustomMetadata{3 bytes}], state=COPY_SEGMENT_FINISHED, "
            "txnIdxEmpty=true}",
        ),
        (
            segment(start_offset=-1),
            "Error at offset 5, skipping. Unexpected start offset = -1. StartOffset for a remote "
            "segment cannot be negative",
        ),
        (
            segment(end_offset=4),
            "Error at offset 5, skipping. Unexpected end offset = 4. EndOffset for a remote "
            "segment cannot be less than startOffset = 5",
        ),
        (
            segment(segment_leader_epochs=[]),
            f"{SKIPPED}. segmentLeaderEpochs can not be null or empty",
        ),
        (segment(remote_log_segment_state=4), f"{SKIPPED}. state can not be null"),
        (
            remote.RemoteLogSegmentMetadataUpdateRecord(
                remote_log_segment_id=SEGMENT,
                broker_id=1,
                event_timestamp_ms=12,
                custom_metadata=None,
                remote_log_segment_state=3,
            ),
            f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={SEGMENT_TEXT}, "
            "customMetadata=Optional.empty, state=DELETE_SEGMENT_FINISHED, eventTimestampMs=12, "
            "brokerId=1}",
        ),
        (
            remote.RemotePartitionDeleteMetadataRecord(
                topic_id_partition=PARTITION,
                broker_id=1,
                event_timestamp_ms=12,
                remote_partition_delete_state=0,
            ),
            f"RemotePartitionDeleteMetadata{{topicPartition={TOPIC_ID_TEXT}:t-3, "
            "state=DELETE_PARTITION_MARKED, eventTimestampMs=12, brokerId=1}",
        ),
        (
            remote.RemoteLogSegmentMetadataSnapshotRecord(
                segment_id=UUID(int=2),
                start_offset=5,
                end_offset=9,
                broker_id=1,
                max_timestamp_ms=11,
                event_timestamp_ms=12,
                segment_leader_epochs=EPOCHS[:1],
                segment_size_in_bytes=13,
                custom_metadata=None,
                remote_log_segment_state=0,
            ),
            "RemoteLogSegmentMetadataSnapshot{segmentId=AAAAAAAAAAAAAAAAAAAAAg, startOffset=5, "
            "endOffset=9, maxTimestampMs=11, segmentLeaderEpochs={2=7}, segmentSizeInBytes=13, "
            "customMetadata=Optional.empty, state=COPY_SEGMENT_STARTED, txnIdxEmpty=false}",
        ),
    ],
)
def test_remote_log_metadata_decoder_prints_its_records(
    message: Message, text: str, tmp_path: Path
) -> None:
    assert type(message) in remote.RECORDS.values()
    assert f"payload: {text}" == decoded(tmp_path, REMOTE, None, framed(message))


def test_remote_log_metadata_without_a_value_is_printed_as_javas_null_error(tmp_path: Path) -> None:
    assert (
        'payload: Error at offset 5, skipping. Cannot invoke "java.nio.ByteBuffer.remaining()" '
        'because the return value of "org.apache.kafka.common.record.internal.Record.value()" is '
        "null"
    ) == decoded(tmp_path, REMOTE, None, None)


def test_tagged_fields_are_printed_unless_they_have_their_default(tmp_path: Path) -> None:
    """
    Null is a value where the default is an empty struct.
    """
    member = groups.consumer.ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=[],
        subscribed_topic_regex=None,
        server_assignor=None,
        classic_member_metadata=None,
    )
    key = struct.pack(">h", 5) + b"\0\1g\0\1m"

    null = decoded(tmp_path, OFFSETS, key, b"\0\0" + encode(member, 0))
    without_tags = b"\0\0" + encode(member, 0)[:-4]
    left_out = decoded(tmp_path, OFFSETS, key, without_tags + b"\0")
    tag, size, present, session_timeout, protocols, tags = 0, 7, 1, bytes(4), 1, 0
    default = bytes((1, tag, size, present, *session_timeout, protocols, tags))
    written = decoded(tmp_path, OFFSETS, key, without_tags + default)

    assert null.endswith('"serverAssignor":null,"classicMemberMetadata":null}}')
    assert left_out.endswith('"serverAssignor":null}}')
    assert left_out == written
