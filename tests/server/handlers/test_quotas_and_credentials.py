"""
Client quotas, SCRAM credentials, access control and brokers that are gone, on a node without a
network: what is stored. test_cluster_answers.py compares the answers with those of Apache Kafka.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.server.cluster.scram_credentials import scram_credentials
from barnabas.server.requests.errors import CloseConnection
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.cluster_node import NODE_ID, ClusterNode, ask, started
from tests.support.cluster_requests import (
    acls,
    new_acl,
    new_credentials,
    new_quotas,
    no_acl,
    quotas,
    users,
)

E = ErrorCode
U = {"user": "u"}


async def found(node: ClusterNode, *filters: tuple[str, int, str | None], **options: bool) -> Any:
    answer = await ask(node, quotas(*filters, **options), 1)
    assert 0 == answer.error_code
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries
    }


async def alter(node: ClusterNode, *entries: Any, **options: bool) -> list[int]:
    answer = await ask(node, new_quotas(*entries, **options), 1)
    return [entry.error_code for entry in answer.entries]


# Quotas


async def test_quotas_survive_a_restart() -> None:
    files = MemoryFiles()
    node = await started(files)
    assert [0] == await alter(node, (U, [("producer_byte_rate", 1000.0)]))
    assert [0] == await alter(node, (U, [("consumer_byte_rate", 9.0)]))
    await node.stop()

    node = await started(files)

    expected = {"producer_byte_rate": 1000.0, "consumer_byte_rate": 9.0}
    assert {(("user", "u"),): expected} == await found(node)

    assert [0] == await alter(node, (U, [("producer_byte_rate", None)]))
    assert {(("user", "u"),): {"consumer_byte_rate": 9.0}} == await found(node)


async def test_unchanged_or_validated_quotas_are_not_written() -> None:
    node = await started()
    await alter(node, (U, [("producer_byte_rate", 5.0)]))
    end = node.log.end_offset

    assert [0] == await alter(node, (U, [("producer_byte_rate", 6.0)]), validate=True)
    assert [0] == await alter(node, (U, [("producer_byte_rate", 5.0)]))
    assert [0] == await alter(node, (U, [("consumer_byte_rate", None)]))
    assert end == node.log.end_offset


# Credentials


async def change(node: ClusterNode, *wanted: Any, **options: Any) -> dict[str, int]:
    answer = await ask(node, new_credentials(*wanted, **options), 0)
    return {result.user: result.error_code for result in answer.results}


async def described(node: ClusterNode, *names: str) -> dict[str, Any]:
    answer = await ask(node, users(*names), 0)
    return {
        result.user: result.error_code
        or [(info.mechanism, info.iterations) for info in result.credential_infos]
        for result in answer.results
    }


async def test_scram_credentials_survive_a_restart() -> None:
    files = MemoryFiles()
    node = await started(files)
    assert {"a": 0, "b": 0} == await change(node, ("a", 1, 4096), ("b", 2, 8192))
    assert {"a": 0} == await change(node, ("a", 2, 5000))
    await node.stop()

    node = await started(files)

    assert {"a": [(1, 4096), (2, 5000)], "b": [(2, 8192)]} == await described(node)
    assert {"a": 0} == await change(node, without=[("a", 1)])
    assert {"a": [(2, 5000)]} == await described(node, "a")


async def test_failed_credential_changes_do_not_block_the_next_user() -> None:
    node = await started()
    unknown = [("a", 1), ("a", 2)]

    answer = await change(node, ("b", 1, 4096), without=unknown)

    assert {"a": E.RESOURCE_NOT_FOUND, "b": 0} == answer


async def test_scram_credential_does_not_contain_the_password() -> None:
    node = await started()
    await change(node, ("a", 1, 4096))

    kept = scram_credentials(node.log.image)["a"][1]

    key = hmac.digest(b"salted password", b"Client Key", "sha256")
    assert hashlib.sha256(key).digest() == kept.stored_key
    assert hmac.digest(b"salted password", b"Server Key", "sha256") == kept.server_key
    assert b"salt" == kept.salt


async def test_scram_credential_without_a_password_is_refused() -> None:
    node = await started()
    nothing = ScramCredentialUpsertion(
        name="a", mechanism=1, iterations=5000, salt=b"salt", salted_password=b""
    )

    answer = await ask(
        node, AlterUserScramCredentialsRequest(deletions=[], upsertions=[nothing]), 0
    )

    assert [E.UNKNOWN_SERVER_ERROR] == [result.error_code for result in answer.results]
    assert {} == await described(node)


async def test_a_credential_that_fits_into_no_metadata_record_is_refused_and_changes_go_on() -> (
    None
):
    node = await started()
    large = ScramCredentialUpsertion(
        name="a", mechanism=1, iterations=5000, salt=bytes(9 << 20), salted_password=b"p"
    )
    request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[large])

    answer = await ask(node, request, 0)

    (result,) = answer.results
    assert E.RECORD_LIST_TOO_LARGE == result.error_code
    assert "A metadata record of 9437" in result.error_message
    assert {"b": E.NONE} == await change(node, ("b", 1, 5000))
    assert {"b": [(1, 5000)]} == await described(node)


# Access control, brokers


@pytest.mark.parametrize("kind", ["resource_type", "pattern_type", "operation", "permission_type"])
async def test_unknown_acl_filter_types_are_refused(kind: str) -> None:
    node = await started()
    of_filter = {"resource_type": "resource_type_filter", "pattern_type": "pattern_type_filter"}
    in_filter = {of_filter.get(kind, kind): 0}
    in_creation = {"resource_pattern_type" if kind == "pattern_type" else kind: 0}

    for request in (acls(**in_filter), new_acl("t", **in_creation), no_acl("t", **in_filter)):
        with pytest.raises(CloseConnection, match="UNKNOWN"):
            await ask(node, request, 3)


async def test_broker_that_is_gone_can_be_unregistered() -> None:
    node = await started()
    gone = records.RegisterBrokerRecord(
        broker_id=2,
        incarnation_id=UUID(int=5),
        broker_epoch=7,
        end_points=[],
        features=[],
        rack=None,
    )
    await node.controller.change(lambda: node.controller.write([(gone, 4)]))

    assert 0 == (await ask(node, UnregisterBrokerRequest(broker_id=2), 0)).error_code
    assert [NODE_ID] == list(node.log.image.brokers)


@pytest.mark.parametrize(
    ("broker_id", "code"), [(7, E.BROKER_ID_NOT_REGISTERED), (NODE_ID, E.INVALID_REQUEST)]
)
async def test_other_brokers_cannot_be_unregistered(broker_id: int, code: int) -> None:
    node = await started()

    answer = await ask(node, UnregisterBrokerRequest(broker_id=broker_id), 0)

    assert code == answer.error_code
    assert str(broker_id) in answer.error_message
