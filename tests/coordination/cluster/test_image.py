from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.cluster.errors import InconsistentMetadata, UnsupportedFeatureLevel
from barnabas.coordination.cluster.image import MetadataImage
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.protocol.structs import replace
from tests.support.metadata_records import broker_record, config_record, partition_record

A, B = UUID(int=0xA), UUID(int=0xB)


def feature(name: str, level: int) -> Message:
    return records.FeatureLevelRecord(name=name, feature_level=level)


def topic(name: str, topic_id: UUID) -> Message:
    return records.TopicRecord(name=name, topic_id=topic_id)


def image_of(*made: Message) -> MetadataImage:
    image = MetadataImage()
    for record in made:
        image.apply(record)
    return image


def content(image: MetadataImage) -> list[str]:
    """
    All that an image has, in an order that does not depend on how it came about.
    """
    return sorted(map(repr, image.as_records()))


def test_topic_is_found_by_name_and_by_id_until_it_is_removed() -> None:
    image = image_of(topic("a", A), partition_record(A, 0), topic("b", B))
    assert image.topics_by_name["a"] is image.topics_by_id[A]
    assert 1 == image.topics_by_id[A].partitions[0].leader

    image.apply(records.RemoveTopicRecord(topic_id=A))

    assert ["b"] == list(image.topics_by_name)
    assert [B] == list(image.topics_by_id)


def test_removed_topic_loses_its_configs_and_frees_its_name() -> None:
    image = image_of(topic("a.b", A), config_record("retention.ms", "5", "a.b", 2))

    image.apply(records.RemoveTopicRecord(topic_id=A))

    assert {} == image.config(2, "a.b")
    assert {} == image.collisions
    image.apply(topic("a.b", B))


def test_null_removes_a_config_and_an_empty_resource() -> None:
    image = image_of(config_record("x", "1", "", 4), config_record("y", "2", "", 4))
    assert {"x": "1", "y": "2"} == image.config(4, "")

    image.apply(config_record("x", None, "", 4))
    assert {"y": "2"} == image.config(4, "")
    image.apply(config_record("y", None, "", 4))
    image.apply(config_record("never there", None, "1", 4))

    assert {} == image.configs


def test_broker_is_fenced_and_unfenced_by_old_and_new_records() -> None:
    image = image_of(broker_record(1, 7))
    assert image.brokers[1].fenced

    change = records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=-1)
    image.apply(change)
    assert not image.brokers[1].fenced
    image.apply(records.FenceBrokerRecord(id=1, epoch=7))
    assert image.brokers[1].fenced
    image.apply(records.UnfenceBrokerRecord(id=1, epoch=7))
    assert not image.brokers[1].fenced
    image.apply(
        records.BrokerRegistrationChangeRecord(
            broker_id=1, broker_epoch=7, in_controlled_shutdown=1, log_dirs=[A]
        )
    )
    assert image.brokers[1].in_controlled_shutdown
    assert [A] == image.brokers[1].log_dirs
    image.apply(records.UnregisterBrokerRecord(broker_id=1, broker_epoch=7))
    assert {} == image.brokers


def test_eligible_leader_replicas_are_cleared_for_one_topic_or_all() -> None:
    elr = {"eligible_leader_replicas": [1], "last_known_elr": [1]}
    image = image_of(
        topic("a", A),
        partition_record(A, 0, **elr),
        partition_record(A, 1),
        topic("b", B),
        partition_record(B, 0, **elr),
    )

    def eligible(topic_id: UUID) -> list[tuple[int, ...]]:
        partitions = image.topics_by_id[topic_id].partitions.values()
        return [p.eligible_leader_replicas + p.last_known_elr for p in partitions]

    image.apply(records.ClearElrRecord(topic_name="a"))
    assert [(), ()] == eligible(A)
    assert [(1, 1)] == eligible(B)
    epochs = [p.partition_epoch for p in image.topics_by_id[A].partitions.values()]
    assert [1, 0] == epochs

    image.apply(records.ClearElrRecord(topic_name=""))
    assert [()] == eligible(B)


@pytest.mark.parametrize(
    ("before", "record"),
    [
        ([topic("a", A)], topic("a", B)),
        ([], partition_record(A, 0)),
        ([], records.RemoveTopicRecord(topic_id=A)),
        ([topic("a", A)], records.PartitionChangeRecord(partition_id=0, topic_id=A)),
        ([], records.PartitionChangeRecord(partition_id=0, topic_id=A)),
        ([], records.ClearElrRecord(topic_name="a")),
        ([broker_record(1, 7)], records.FenceBrokerRecord(id=1, epoch=6)),
        ([], records.UnregisterBrokerRecord(broker_id=1, broker_epoch=7)),
        (
            [records.ProducerIdsRecord(broker_id=1, broker_epoch=7, next_producer_id=1000)],
            records.ProducerIdsRecord(broker_id=1, broker_epoch=7, next_producer_id=1000),
        ),
    ],
)
def test_metadata_records_that_do_not_fit_are_refused(
    before: list[Message], record: Message
) -> None:
    # An incomplete log must not be served as if it were complete.
    image = image_of(*before)
    unchanged = content(image)

    with pytest.raises(InconsistentMetadata):
        image.apply(record)

    assert unchanged == content(image)


@pytest.mark.parametrize(
    ("name", "level"),
    [("metadata.version", 31), ("metadata.version", 6), ("group.version", 2), ("new.feature", 1)],
)
def test_unknown_features_of_later_releases_are_refused(name: str, level: int) -> None:
    with pytest.raises(UnsupportedFeatureLevel, match=name):
        MetadataImage().apply(feature(name, level))


def test_feature_at_level_0_is_removed() -> None:
    image = image_of(feature("group.version", 1), feature("group.version", 0), feature("new", 0))

    assert {} == image.feature_levels


def quota(user: str | None, key: str, *, remove: bool = False) -> Message:
    return records.ClientQuotaRecord(
        entity=[records.EntityData(entity_type="user", entity_name=user)],
        key=key,
        value=1.0,
        remove=remove,
    )


def acl(number: int) -> Message:
    return records.AccessControlEntryRecord(
        id=UUID(int=number), resource_type=2, resource_name="t", pattern_type=3,
        principal="User:a", host="*", operation=3, permission_type=3,
    )  # fmt: skip


def scram(name: str, mechanism: int) -> Message:
    return records.UserScramCredentialRecord(
        name=name, mechanism=mechanism, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )


def token(token_id: str) -> Message:
    return records.DelegationTokenRecord(
        owner="o", requester="r", renewers=[], issue_timestamp=1, max_timestamp=2,
        expiration_timestamp=3, token_id=token_id,
    )  # fmt: skip


def test_records_without_effect_are_kept_for_kafka() -> None:
    # By key and until they are removed, for an Apache Kafka that opens the log next.
    image = image_of(
        acl(1), acl(2), scram("a", 1), scram("a", 2), scram("b", 1), token("x"), token("y"),
        quota("a", "p"), quota(None, "p"), quota("a", "q"), quota("a", "p"),
    )  # fmt: skip
    for remover in (
        records.RemoveAccessControlEntryRecord(id=UUID(int=1)),
        records.RemoveUserScramCredentialRecord(name="a", mechanism=2),
        records.RemoveDelegationTokenRecord(token_id="x"),
        quota("a", "q", remove=True),
        quota("never", "there", remove=True),
    ):
        image.apply(remover)

    kept = [acl(2), scram("a", 1), scram("b", 1), token("y"), quota("a", "p"), quota(None, "p")]
    assert sorted(map(repr, kept)) == sorted(
        repr(record)
        for record, _ in image.as_records()
        if not isinstance(record, records.FeatureLevelRecord)
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [("principal", "alice"), ("operation", 99), ("pattern_type", 2), ("resource_name", "")],
)
def test_invalid_acl_record_is_an_error(field: str, value: object) -> None:
    with pytest.raises(InconsistentMetadata, match=f"access control entry {UUID(int=1)}: "):
        image_of(replace(acl(1), **{field: value}))


def test_removing_an_unknown_acl_is_an_error() -> None:
    with pytest.raises(InconsistentMetadata, match="no access control entry has the id"):
        image_of(records.RemoveAccessControlEntryRecord(id=UUID(int=9)))


names = st.sampled_from(["a", "b", "c.d", "c_e"])
ids = st.integers(1, 6).map(lambda number: UUID(int=number))
values = st.none() | st.sampled_from(["1", "2"])
changes = st.lists(
    st.one_of(
        st.builds(topic, names, ids),
        st.builds(partition_record, ids, st.integers(0, 2)),
        st.builds(lambda i: records.RemoveTopicRecord(topic_id=i), ids),
        st.builds(config_record, names, values, names, st.sampled_from([2, 4])),
        st.builds(acl, st.integers(1, 3)),
        st.builds(scram, names, st.sampled_from([1, 2])),
        st.builds(quota, names | st.none(), names, remove=st.booleans()),
        st.builds(broker_record, st.just(1), st.integers(1, 3)),
        st.builds(feature, st.just("group.version"), st.sampled_from([0, 1])),
        st.builds(
            lambda n: records.ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=n),
            st.integers(0, 9000),
        ),
    ),
    max_size=30,
)


@given(changes)
def test_records_of_an_image_rebuild_it(made: list[Message]) -> None:
    image = image_of(feature("metadata.version", 30))
    for record in made:
        try:
            image.apply(record)
        except InconsistentMetadata:
            continue

    again = image_of(*[record for record, _ in image.as_records()])

    assert content(image) == content(again)
    assert image.collisions.keys() == again.collisions.keys()
