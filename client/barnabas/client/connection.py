"""
One connection to a broker, over which requests are answered in their order.
"""

from __future__ import annotations

import mmap
import socket
import struct
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from barnabas.client.errors import BrokerError, Disconnected, NotABroker
from barnabas.client.sasl import exchange
from barnabas.client.settings import ClientSettings, Tls
from barnabas.protocol import apis
from barnabas.protocol.codec.codec import decode_from, encode_parts
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from barnabas.protocol.messages import RESPONSES
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.storage.clock import seconds_now

if TYPE_CHECKING:
    from ssl import SSLContext

_SIZE: Final = struct.Struct(">i")
_LARGEST_ANSWER: Final = 1 << 30
_LARGEST_FIRST_ANSWER: Final = 1 << 20
"""Before the first answer was understood: something else than a broker may be there."""
_HTTP: Final = b"HTTP"
_TLS_ALERT: Final = b"\x15\x03"
"""A record of TLS (RFC 8446, 5.1) whose type is alert: it refuses a request without TLS."""

_LARGEST_BYTEARRAY: Final = 128 << 10

VERSIONS: Final = {
    apis.PRODUCE.key: 9,
    apis.FETCH.key: 11,
    apis.LIST_OFFSETS.key: 5,
    apis.METADATA.key: 8,
    apis.OFFSET_COMMIT.key: 7,
    apis.OFFSET_FETCH.key: 7,
    apis.FIND_COORDINATOR.key: 3,
    apis.INIT_PRODUCER_ID.key: 4,
    apis.ADD_PARTITIONS_TO_TXN.key: 3,
    apis.END_TXN.key: 3,
    apis.SASL_HANDSHAKE.key: 1,
    apis.SASL_AUTHENTICATE.key: 1,
    apis.API_VERSIONS.key: 0,
}
"""
Versions that all brokers since Apache Kafka 2.5 have; APIs that are missing here use the latest
version that both sides know. With EndTxn up to 4 the epoch of a producer stays the same from one
transaction to the next (KIP-890), so the same request may be sent twice.
"""


class Connection:
    """
    Requests and their answers. What goes wrong on the way is a ``Disconnected``, after which the
    connection is of no use any more.
    """

    def __init__(self, host: str, port: int, settings: ClientSettings) -> None:
        """
        Raises:
            Disconnected: nobody is there, or nobody who answers.
            NotABroker: something else is there.
            BrokerError: the broker does not let this client in.
        """
        self.address = f"{host}:{port}"
        self._settings = settings
        self._asked: deque[tuple[int, Message, int]] = deque()
        self._next_id = 0
        self._most = _LARGEST_FIRST_ANSWER
        self.is_closed = False
        self._versions: dict[int, tuple[int, int]] | None = None
        try:
            # First what may fail without a peer, then no socket is left open.
            context = None if settings.tls is None else _tls_context(settings.tls)
            plain = socket.create_connection((host, port), timeout=settings.timeout_s)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = (
                plain if context is None else context.wrap_socket(plain, server_hostname=host)
            )
        except OSError as error:
            reason = error.strerror if isinstance(error, ConnectionError) else error
            raise Disconnected(f"{self.address} cannot be reached: {reason}.") from error
        try:
            self._greet()
        except BaseException:
            self.close()
            raise

    def _greet(self) -> None:
        answer = self.ask(ApiVersionsRequest())
        if answer.error_code:
            raise BrokerError.of(answer.error_code, f"{self.address} does not say what it knows")
        self._versions = {
            each.api_key: (each.min_version, each.max_version) for each in answer.api_keys
        }
        self._most = _LARGEST_ANSWER
        sasl = self._settings.sasl
        if sasl is not None:
            answered = self.ask(SaslHandshakeRequest(mechanism=sasl.mechanism))
            if answered.error_code:
                offered = ", ".join(answered.mechanisms)
                raise BrokerError.of(
                    answered.error_code,
                    f"{self.address} does not offer {sasl.mechanism}, but {offered}",
                )
            exchange(sasl, self._authenticate)

    def _authenticate(self, token: bytes) -> bytes:
        answer = self.ask(SaslAuthenticateRequest(auth_bytes=token))
        if answer.error_code:
            why = answer.error_message or ""
            raise BrokerError.of(answer.error_code, f"{self.address} refuses this user: {why}")
        return bytes(answer.auth_bytes)

    def close(self) -> None:
        self.is_closed = True
        with suppress(OSError):
            self._socket.close()

    @property
    def unanswered(self) -> int:
        """
        How many requests were sent that have no answer yet.
        """
        return len(self._asked)

    def ask(self, request: Message) -> Any:
        """
        The answer to a request; none may be outstanding.

        Raises:
            Disconnected: it does not come, or is none.
        """
        assert not self._asked, "answers come in the order of their requests"
        self.send(request)
        return self.receive()[0]

    def send(self, request: Message) -> None:
        """
        Raises:
            Disconnected: it cannot be sent.
        """
        key = request.api.key
        version = VERSIONS.get(key, request.api.versions[-1])
        if self._versions is not None:
            oldest, latest = self._versions.get(key, (0, -1))
            version = min(version, latest)
            if version < oldest or version not in request.api.versions:
                name = type(request).__name__
                raise BrokerError.of(
                    ErrorCode.UNSUPPORTED_VERSION, f"{self.address} does not understand {name}"
                )
        header = encode_request_header(
            RequestHeader(key, version, self._next_id, self._settings.client_id)
        )
        parts = encode_parts(request, version)
        size = len(header) + sum(map(len, parts))
        self._asked.append((self._next_id, request, version))
        self._next_id += 1
        try:
            self._socket.settimeout(self._settings.timeout_s)
            _send_all(self._socket, [_SIZE.pack(size) + header, *parts])
        except OSError as error:
            raise self._lost(error) from error

    def receive(self) -> tuple[Any, Message]:
        """
        The answer to the oldest request that has none, and that request. Records in it are views on
        memory that nobody else uses.

        Raises:
            Disconnected: it does not come, or is none.
        """
        correlation_id, request, version = self._asked.popleft()
        until = seconds_now() + self._settings.timeout_s
        try:
            frame = self._frame(until)
            received, position = decode_response_header(request.api.key, version, frame)
            if received != correlation_id:
                raise DecodeError(f"answer {received} came instead of answer {correlation_id}")
            return decode_from(RESPONSES[request.api.key], version, frame, position)[0], request
        except TimeoutError as error:
            raise self._lost(f"no answer in {self._settings.timeout_s:g} seconds") from error
        except DecodeError as error:
            if self._is_new:
                raise self._no_broker(f"its first answer cannot be read: {error}.") from error
            raise self._lost(error) from error
        except (OSError, EOFError) as error:
            raise self._lost(error) from error

    @property
    def _is_new(self) -> bool:
        return self._most == _LARGEST_FIRST_ANSWER

    def _frame(self, until: float) -> memoryview:
        """
        The next answer, whatever is in it.

        Args:
            until: the time of ``seconds_now`` by which all of it has to be there.
        """
        head = self._exactly(_SIZE.size, until, "closed before an answer came")
        (size,) = _SIZE.unpack(head)
        if not _SIZE.size <= size <= self._most:
            if self._is_new:
                raise self._no_broker(_what_answers(bytes(head), size))
            raise OSError(
                f"an answer of {size:,} bytes was announced, and at most {self._most:,} are taken"
            )
        return self._exactly(size, until)

    def _lost(self, why: Exception | str) -> Disconnected:
        self.close()
        return Disconnected(f"The connection to {self.address} is lost: {why or 'it was closed'}.")

    def _no_broker(self, why: str) -> NotABroker:
        self.close()
        return NotABroker(f"{self.address} is no Kafka broker: {why}")

    def _exactly(self, size: int, until: float, nothing_came: str = "") -> memoryview:
        # The system allocates pages of a mapping when they are written: a size that a peer only
        # announces costs no memory.
        data = memoryview(mmap.mmap(-1, size) if size > _LARGEST_BYTEARRAY else bytearray(size))
        filled = 0
        while filled < size:
            left_s = until - seconds_now()
            if left_s <= 0:
                raise TimeoutError
            self._socket.settimeout(left_s)
            count = self._socket.recv_into(data[filled:])
            if not count:
                in_the_middle = "closed in the middle of an answer"
                raise EOFError(
                    f"it was {in_the_middle if filled else nothing_came or in_the_middle}"
                )
            filled += count
        return data


def _what_answers(head: bytes, size: int) -> str:
    if head == _HTTP:
        return "it answers in HTTP."
    if head.startswith(_TLS_ALERT):
        return "it answers in TLS: set security.protocol to SSL or SASL_SSL."
    return (
        f"it announces a first answer of {size:,} bytes, and that of a broker has at most"
        f" {_LARGEST_FIRST_ANSWER:,}."
    )


def _send_all(connection: socket.socket, parts: Sequence[bytes | bytearray | memoryview]) -> None:
    for part in parts:
        connection.sendall(part)


def _tls_context(tls: Tls) -> SSLContext:
    import ssl  # noqa: PLC0415  # few queries need it

    context = ssl.create_default_context(cafile=tls.ca_file, cadata=tls.ca_text)
    if not tls.checks_host:
        context.check_hostname = False
    if tls.key_file is not None:
        context.load_cert_chain(tls.key_file, password=tls.key_password)
    return context
