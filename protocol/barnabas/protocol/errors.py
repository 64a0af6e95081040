"""
Kafka's error codes, an exception for each, and what is raised for bytes that make no sense.

A handler lets a ``KafkaError`` pass and its code becomes the answer. ``DecodeError`` has no code:
who sends bytes that cannot be read is disconnected.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ErrorCode(IntEnum):
    """
    A number that stands in an ``error_code`` of the wire, with what it means.
    """

    sentence: str

    def __new__(cls, code: int, sentence: str = "") -> ErrorCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member

    UNKNOWN_SERVER_ERROR = -1, "The server failed in a way it did not foresee."
    NONE = 0, "No error."
    OFFSET_OUT_OF_RANGE = 1, "The log does not hold this offset."
    CORRUPT_MESSAGE = 2, "The records fail their checksum or are otherwise damaged."
    UNKNOWN_TOPIC_OR_PARTITION = 3, "This broker has no such topic or partition."
    INVALID_FETCH_SIZE = 4, "The size to fetch is not valid."
    LEADER_NOT_AVAILABLE = 5, "The partition has no leader at the moment."
    NOT_LEADER_OR_FOLLOWER = 6, "This broker does not lead the partition, nor follow it."
    REQUEST_TIMED_OUT = 7, "The request was not finished in time."
    BROKER_NOT_AVAILABLE = 8, "The broker is not available."
    REPLICA_NOT_AVAILABLE = 9, "A replica of the partition is not available."
    MESSAGE_TOO_LARGE = 10, "The batch is larger than the topic accepts."
    STALE_CONTROLLER_EPOCH = 11, "Another controller has taken over."
    OFFSET_METADATA_TOO_LARGE = 12, "The metadata of a committed offset is too long."
    NETWORK_EXCEPTION = 13, "The connection went away before the answer came."
    COORDINATOR_LOAD_IN_PROGRESS = 14, "The coordinator is still loading."
    COORDINATOR_NOT_AVAILABLE = 15, "There is no coordinator at the moment."
    NOT_COORDINATOR = 16, "Another broker is the coordinator."
    INVALID_TOPIC_EXCEPTION = (
        17,
        "The topic name is not legal, or the topic may not be used like this.",
    )
    RECORD_LIST_TOO_LARGE = 18, "The batch is larger than a segment of the log may be."
    NOT_ENOUGH_REPLICAS = 19, "Too few replicas are in sync to accept the write."
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "The records were written, but to too few replicas."
    INVALID_REQUIRED_ACKS = 21, "acks must be -1, 0 or 1."
    ILLEGAL_GENERATION = 22, "The generation is not the group's current one."
    INCONSISTENT_GROUP_PROTOCOL = 23, "The member shares no protocol with the rest of the group."
    INVALID_GROUP_ID = 24, "The group id is not legal."
    UNKNOWN_MEMBER_ID = 25, "The group has no such member."
    INVALID_SESSION_TIMEOUT = 26, "The session timeout is outside the range this broker allows."
    REBALANCE_IN_PROGRESS = 27, "The group is rebalancing; join it again."
    INVALID_COMMIT_OFFSET_SIZE = 28, "The data of the committed offset is too large."
    TOPIC_AUTHORIZATION_FAILED = 29, "Not authorized for the topic."
    GROUP_AUTHORIZATION_FAILED = 30, "Not authorized for the group."
    CLUSTER_AUTHORIZATION_FAILED = 31, "Not authorized for the cluster."
    INVALID_TIMESTAMP = 32, "A timestamp is too far from the broker's time."
    UNSUPPORTED_SASL_MECHANISM = 33, "The broker does not offer this SASL mechanism."
    ILLEGAL_SASL_STATE = 34, "The request does not fit the state of the SASL exchange."
    UNSUPPORTED_VERSION = 35, "This version of the API is not supported."
    TOPIC_ALREADY_EXISTS = 36, "A topic of this name exists already."
    INVALID_PARTITIONS = 37, "The number of partitions is not valid."
    INVALID_REPLICATION_FACTOR = (
        38,
        "The replication factor is below 1 or above the number of brokers.",
    )
    INVALID_REPLICA_ASSIGNMENT = 39, "The assignment of replicas is not valid."
    INVALID_CONFIG = 40, "The configuration is not valid."
    NOT_CONTROLLER = 41, "This broker is not the controller."
    INVALID_REQUEST = 42, "The request makes no sense, or does not fit its version."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "The message format on disk does not support the request."
    POLICY_VIOLATION = 44, "The request violates a policy of the cluster."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "The batch does not follow the producer's previous one."
    DUPLICATE_SEQUENCE_NUMBER = 46, "The producer has sent this batch before."
    INVALID_PRODUCER_EPOCH = 47, "The producer's epoch is an old one."
    INVALID_TXN_STATE = 48, "The transaction is not in a state that allows this."
    INVALID_PRODUCER_ID_MAPPING = 49, "The producer id does not belong to the transactional id."
    INVALID_TRANSACTION_TIMEOUT = 50, "The transaction timeout is above what the broker allows."
    CONCURRENT_TRANSACTIONS = 51, "The previous operation on the transaction has not finished yet."
    TRANSACTION_COORDINATOR_FENCED = 52, "A newer transaction coordinator has taken over."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "Not authorized for the transactional id."
    SECURITY_DISABLED = 54, "Security is not switched on."
    OPERATION_NOT_ATTEMPTED = 55, "Not tried, since another part of the request failed."
    KAFKA_STORAGE_ERROR = 56, "The log directory has failed."
    LOG_DIR_NOT_FOUND = 57, "The broker has no such log directory."
    SASL_AUTHENTICATION_FAILED = 58, "SASL authentication failed."
    UNKNOWN_PRODUCER_ID = 59, "Nothing is known about the producer id any more."
    REASSIGNMENT_IN_PROGRESS = 60, "The partition is being reassigned."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "Delegation tokens are not switched on."
    DELEGATION_TOKEN_NOT_FOUND = 62, "There is no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "The delegation token belongs to someone else."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (
        64,
        "Delegation tokens cannot be asked for over this connection.",
    )
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "Not authorized for the delegation token."
    DELEGATION_TOKEN_EXPIRED = 66, "The delegation token has expired."
    INVALID_PRINCIPAL_TYPE = 67, "Principals of this type are not supported."
    NON_EMPTY_GROUP = 68, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, "There is no such group."
    FETCH_SESSION_ID_NOT_FOUND = 70, "There is no such fetch session."
    INVALID_FETCH_SESSION_EPOCH = 71, "The fetch session expects another epoch."
    LISTENER_NOT_FOUND = 72, "The leader has no listener like the one the request came in on."
    TOPIC_DELETION_DISABLED = 73, "Deleting topics is not allowed on this cluster."
    FENCED_LEADER_EPOCH = 74, "The leader epoch of the request is an old one."
    UNKNOWN_LEADER_EPOCH = 75, "The leader epoch of the request is ahead of this broker's."
    UNSUPPORTED_COMPRESSION_TYPE = (
        76,
        "The partition is compressed in a way this client cannot read.",
    )
    STALE_BROKER_EPOCH = 77, "The broker epoch is an old one."
    OFFSET_NOT_AVAILABLE = 78, "After an election, the high watermark has not caught up yet."
    MEMBER_ID_REQUIRED = 79, "Join again with the member id of this answer."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "The preferred leader is not available."
    GROUP_MAX_SIZE_REACHED = 81, "The group has as many members as it may have."
    FENCED_INSTANCE_ID = 82, "Another member has taken over the static instance id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "None of the replicas that could lead is available."
    ELECTION_NOT_NEEDED = 84, "The partition needs no election."
    NO_REASSIGNMENT_IN_PROGRESS = 85, "The partition is not being reassigned."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "The group is subscribed to the topic."
    INVALID_RECORD = 87, "A record breaks the rules of the broker or the topic."
    UNSTABLE_OFFSET_COMMIT = 88, "Offsets of an open transaction are not decided yet."
    THROTTLING_QUOTA_EXCEEDED = 89, "The quota is used up."
    PRODUCER_FENCED = 90, "A newer producer uses the transactional id."
    RESOURCE_NOT_FOUND = 91, "The resource does not exist."
    DUPLICATE_RESOURCE = 92, "The request names a resource twice."
    UNACCEPTABLE_CREDENTIAL = 93, "The credential is not acceptable."
    INCONSISTENT_VOTER_SET = 94, "Sender and receiver disagree on who votes."
    INVALID_UPDATE_VERSION = 95, "The version to update to is not valid."
    FEATURE_UPDATE_FAILED = 96, "The features could not be updated."
    PRINCIPAL_DESERIALIZATION_FAILURE = (
        97,
        "The principal of a forwarded request could not be read.",
    )
    SNAPSHOT_NOT_FOUND = 98, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, "The position lies outside the snapshot."
    UNKNOWN_TOPIC_ID = 100, "This broker has no topic of this id."
    DUPLICATE_BROKER_REGISTRATION = 101, "Another broker is registered under this id."
    BROKER_ID_NOT_REGISTERED = 102, "No broker is registered under this id."
    INCONSISTENT_TOPIC_ID = 103, "The log belongs to a topic of another id."
    INCONSISTENT_CLUSTER_ID = 104, "The request is meant for another cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, "There is no such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "The fetch session mixes topic names and topic ids."
    INELIGIBLE_REPLICA = 107, "A replica may not be put in sync."
    NEW_LEADER_ELECTED = 108, "The change was made, and the leader is another one now."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "The offset is in tiered storage."
    FENCED_MEMBER_EPOCH = 110, "The group has fenced this member; it must join again."
    UNRELEASED_INSTANCE_ID = 111, "Another member still holds the static instance id."
    UNSUPPORTED_ASSIGNOR = 112, "The group cannot use this assignor, or this version of it."
    STALE_MEMBER_EPOCH = (
        113,
        "The member epoch is an old one; the next heartbeat brings the new one.",
    )
    MISMATCHED_ENDPOINT_TYPE = 114, "The request was sent to the wrong type of endpoint."
    UNSUPPORTED_ENDPOINT_TYPE = 115, "Endpoints of this type are not supported."
    UNKNOWN_CONTROLLER_ID = 116, "There is no such controller."
    UNKNOWN_SUBSCRIPTION_ID = 117, "The telemetry subscription is not valid any more."
    TELEMETRY_TOO_LARGE = 118, "The telemetry is larger than the broker accepts."
    INVALID_REGISTRATION = 119, "The controller does not accept the registration."
    TRANSACTION_ABORTABLE = 120, "The transaction cannot go on; the producer may abort it."
    INVALID_RECORD_STATE = 121, "The record cannot be acknowledged in its state."
    SHARE_SESSION_NOT_FOUND = 122, "There is no such share session."
    INVALID_SHARE_SESSION_EPOCH = 123, "The share session expects another epoch."
    FENCED_STATE_EPOCH = 124, "The share group's state has another epoch."
    INVALID_VOTER_KEY = 125, "The voter key is not that of the replica."
    DUPLICATE_VOTER = 126, "The replica is a voter already."
    VOTER_NOT_FOUND = 127, "The replica is not a voter."
    INVALID_REGULAR_EXPRESSION = 128, "The regular expression is not valid."
    REBOOTSTRAP_REQUIRED = 129, "The client must start again from its bootstrap servers."
    STREAMS_INVALID_TOPOLOGY = 130, "The topology is not valid."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "The epoch of the topology is not valid."
    STREAMS_TOPOLOGY_FENCED = 132, "The epoch of the topology is an old one."
    SHARE_SESSION_LIMIT_REACHED = 133, "The broker holds as many share sessions as it may."


class DecodeError(Exception):
    """
    Bytes end too early, or say something that cannot be.
    """


class KafkaError(Exception):
    """
    A request cannot be fulfilled, for a reason that has a code on the wire.

    Invariants:

    1. Each code has one exception, found by ``error_for``; it is named like the code.
    2. A class made from one of them keeps its code: it only adds what it knows about the case.

    Args:
        sentence: the reason, for the ``error_message`` of an answer and for the log. Without it
            the code speaks for itself.
    """

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR

    def __init__(self, sentence: str | None = None) -> None:
        super().__init__(self.code.sentence if sentence is None else sentence)

    @property
    def own_sentence(self) -> str | None:
        """
        The reason, unless it is just what the code says: where Kafka answers null then
        (``ApiError.fromThrowable``).
        """
        sentence = str(self)
        return None if sentence == self.code.sentence else sentence

    def __init_subclass__(cls, *, code: int | None = None) -> None:
        super().__init_subclass__()
        if code is None:
            return
        number = ErrorCode(code)
        if number in _ERRORS:
            raise TypeError(f"{number.name} has an exception already: {_ERRORS[number].__name__}")
        cls.code = number
        _ERRORS[number] = cls


_ERRORS: dict[int, type[KafkaError]] = {}


def error_for(code: int) -> type[KafkaError]:
    """
    The exception of *code*. Codes that nobody knows are ``UnknownServerError``, as in Kafka.

    Raises:
        ValueError: *code* is 0, which is no error.
    """
    if code == ErrorCode.NONE:
        raise ValueError("0 is not an error")
    if code not in _ERRORS:
        try:
            name = ErrorCode(code).name
        except ValueError:
            return UnknownServerError
        type(name.title().replace("_", ""), (KafkaError,), {}, code=code)
    return _ERRORS[code]


# A line for each code that something here is about, as a table; ``error_for`` makes the others.
# fmt: off
class UnknownServerError(KafkaError, code=-1): ...
class OffsetOutOfRange(KafkaError, code=1): ...
class CorruptMessage(KafkaError, code=2): ...
class UnknownTopicOrPartition(KafkaError, code=3): ...
class NotLeaderOrFollower(KafkaError, code=6): ...
class ReplicaNotAvailable(KafkaError, code=9): ...
class MessageTooLarge(KafkaError, code=10): ...
class CoordinatorLoadInProgress(KafkaError, code=14): ...
class CoordinatorNotAvailable(KafkaError, code=15): ...
class NotCoordinator(KafkaError, code=16): ...
class InvalidTopicException(KafkaError, code=17): ...
class RecordListTooLarge(KafkaError, code=18): ...
class NotEnoughReplicas(KafkaError, code=19): ...
class InvalidRequiredAcks(KafkaError, code=21): ...
class IllegalGeneration(KafkaError, code=22): ...
class InvalidGroupId(KafkaError, code=24): ...
class UnknownMemberId(KafkaError, code=25): ...
class InvalidSessionTimeout(KafkaError, code=26): ...
class RebalanceInProgress(KafkaError, code=27): ...
class InvalidTimestamp(KafkaError, code=32): ...
class UnsupportedSaslMechanism(KafkaError, code=33): ...
class UnsupportedVersion(KafkaError, code=35): ...
class TopicAlreadyExists(KafkaError, code=36): ...
class InvalidPartitions(KafkaError, code=37): ...
class InvalidReplicationFactor(KafkaError, code=38): ...
class InvalidReplicaAssignment(KafkaError, code=39): ...
class InvalidConfig(KafkaError, code=40): ...
class InvalidRequest(KafkaError, code=42): ...
class PolicyViolation(KafkaError, code=44): ...
class OutOfOrderSequenceNumber(KafkaError, code=45): ...
class InvalidProducerEpoch(KafkaError, code=47): ...
class InvalidTxnState(KafkaError, code=48): ...
class InvalidProducerIdMapping(KafkaError, code=49): ...
class InvalidTransactionTimeout(KafkaError, code=50): ...
class ConcurrentTransactions(KafkaError, code=51): ...
class TransactionCoordinatorFenced(KafkaError, code=52): ...
class TransactionalIdAuthorizationFailed(KafkaError, code=53): ...
class KafkaStorageError(KafkaError, code=56): ...
class LogDirNotFound(KafkaError, code=57): ...
class NonEmptyGroup(KafkaError, code=68): ...
class GroupIdNotFound(KafkaError, code=69): ...
class FetchSessionIdNotFound(KafkaError, code=70): ...
class InvalidFetchSessionEpoch(KafkaError, code=71): ...
class TopicDeletionDisabled(KafkaError, code=73): ...
class FencedLeaderEpoch(KafkaError, code=74): ...
class UnknownLeaderEpoch(KafkaError, code=75): ...
class UnsupportedCompressionType(KafkaError, code=76): ...
class PreferredLeaderNotAvailable(KafkaError, code=80): ...
class FencedInstanceId(KafkaError, code=82): ...
class EligibleLeadersNotAvailable(KafkaError, code=83): ...
class ElectionNotNeeded(KafkaError, code=84): ...
class NoReassignmentInProgress(KafkaError, code=85): ...
class InvalidRecord(KafkaError, code=87): ...
class ProducerFenced(KafkaError, code=90): ...
class ResourceNotFound(KafkaError, code=91): ...
class DuplicateResource(KafkaError, code=92): ...
class UnacceptableCredential(KafkaError, code=93): ...
class InvalidUpdateVersion(KafkaError, code=95): ...
class UnknownTopicId(KafkaError, code=100): ...
class BrokerIdNotRegistered(KafkaError, code=102): ...
class InconsistentTopicId(KafkaError, code=103): ...
class FetchSessionTopicIdError(KafkaError, code=106): ...
class StaleMemberEpoch(KafkaError, code=113): ...
class MismatchedEndpointType(KafkaError, code=114): ...
class UnsupportedEndpointType(KafkaError, code=115): ...
class TransactionAbortable(KafkaError, code=120): ...
class InvalidRegularExpression(KafkaError, code=128): ...
