"""
One client's connection: bytes in, bytes out, order and back-pressure.

::

    socket --> FrameReceiver --> frames --> dispatch --> slots --> Sender --> socket
                                    |                      |
                        held while one is served,  in the order of the
                        the peer does not read,    requests, whatever is
                        or too much is unanswered  finished first

What a request means is not known here. Requests that were read together are answered with one
write, and an answer that is ready at once costs no future.

This module is compiled when there is a compiler. A compiled class cannot have one of asyncio's as
its base, so what an event loop is given is a ``LoopProtocol`` (``listening``).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import asyncio
import logging
import math
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from barnabas.protocol import apis
from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.errors import without_frames
from barnabas.protocol.framing import HEAD_BYTES, FrameReceiver, InvalidFrame
from barnabas.server.network.backlog import LARGE_BYTES
from barnabas.server.network.request_memory import LOOK_EVERY_S, PATIENCE_S
from barnabas.server.network.sender import Sender, memory_of
from barnabas.server.requests.client import UNLIMITED, Client, no_connection
from barnabas.server.requests.errors import CloseConnection
from barnabas.server.security.host_address import host_address

if TYPE_CHECKING:
    from barnabas.coordination.clock import Timer
    from barnabas.server.config import Listener
    from barnabas.server.network.backlog import Backlog
    from barnabas.server.network.request_memory import RequestMemory
    from barnabas.server.network.resources import ConnectionResources, PendingRequest
    from barnabas.server.network.write_coalescing import Outbox
    from barnabas.server.requests.context import Effects
    from barnabas.server.requests.errors import Outcome
    from barnabas.server.scheduling.turns import Work

logger = logging.getLogger(__name__)

PRODUCE: Final = apis.PRODUCE.key
ANSWERED_AT_ONCE: Final = frozenset(
    api.key
    for api in (
        apis.JOIN_GROUP,
        apis.SYNC_GROUP,
        apis.CONSUMER_GROUP_HEARTBEAT,
        apis.SHARE_GROUP_HEARTBEAT,
        apis.STREAMS_GROUP_HEARTBEAT,
        apis.READ_SHARE_GROUP_STATE,
        apis.READ_SHARE_GROUP_STATE_SUMMARY,
    )
)
"""
Requests whose answers may be large and are made at once: they do not begin while the memory for
answers is used up.
"""
READING_S: Final = PATIENCE_S
"""
A peer reads if it would have all that it is to get within this time.
"""
LARGE_FRAME_ROOM_BYTES: Final = 1024 * 1024
"""
The receive buffer (SO_RCVBUF) of a connection that sends frames larger than the one it began with.
"""


_NEVER: Final = math.inf


class Slot:
    """
    The place of one answer in the order of answers.
    """

    __slots__ = ("context", "done", "held_bytes", "is_unseen", "parts", "work")

    def __init__(self, context: PendingRequest | None) -> None:
        self.context = context
        self.held_bytes = 0 if context is None else context.held_bytes
        self.parts: list[Buffer] = []
        self.done = False
        self.is_unseen = False
        self.work: Work[Any] | None = None
        """The work of the handler, until it ends."""

    def hurry(self) -> None:
        """
        Something waits behind this answer; let it come early if it can.
        """
        if self.work is not None and self.context is not None:
            effects = self.context.effects
            if effects is not None and effects.hurry is not None:
                effects.hurry()


class Connection:
    """
    A client.

    Invariants:

    1. Answers leave in the order of their requests: ``_slots`` has a slot for every request that
       was started and whose answer was not put into the sender, and only its front ever is.
    2. Requests are started in order, none before the effects of the earlier ones are done, and
       behind a Produce that waits for its fsync only further ones.
    3. The peer is read from only while it reads, and while few requests wait: further ones are
       started only while fewer than ``queued.max.requests`` stand behind others in all connections.
    4. An answer that is ready never stands behind a wait that could end: those in front of it are
       hurried (``Effects.hurry``), so that a long poll holds nobody up.
    5. ``held_bytes`` is what the broker's budget counts for this peer (``RequestMemory``).
    6. No request is started while ``_is_served`` is false: before the peer is admitted, and while
       it has to wait because of a quota. Answers leave nevertheless.
    """

    def __init__(self, resources: ConnectionResources, listener: Listener) -> None:
        self.client = Client(listener)
        self.client.budget = self
        security = resources.security.of(listener)
        if security is not None:
            self.client.authentication = security.authentication(resources.clock)
        self.last_active = 0.0
        self.held_bytes = 0
        self._resources = resources
        self._memory: RequestMemory = resources.request_memory
        self._receiver = FrameReceiver(resources.max_frame_bytes, resources.frame_memory)
        self._is_limited = security is not None and self.client.authentication is not None
        """Whether it may send small requests only, since it is not authenticated yet."""
        if security is not None and self._is_limited:
            self._receiver.max_frame_bytes = min(
                security.max_receive_bytes, resources.max_frame_bytes
            )
        self._transport: asyncio.Transport | None = None
        self._sender: Sender | None = None
        self._outbox: Outbox = resources.outbox
        self._backlog: Backlog = resources.backlog
        self._slots: deque[Slot] = deque()
        self._slots_bytes = 0
        self._unseen = 0  # slots of requests whose effects are not to be seen yet
        self._arriving_since = _NEVER
        self._unread_since = _NEVER
        self._unread_bytes = 0  # of the transport, when the peer began to not read
        self._unread_left = 0  # those at the last look
        self._answers_bytes = 0  # of answers that are being made
        self._waits_to_answer = False
        self._waits_for_memory = False
        self._has_waited = False  # for memory, in the frame that is arriving
        self._room_bytes = resources.receive_buffer_bytes
        self._has_room = self._room_bytes >= LARGE_FRAME_ROOM_BYTES or self._room_bytes < 0
        self._running: Work[Any] | None = None  # its effects are not done
        self._proceeding = False
        self._read_paused = False
        self._is_served = False
        self._throttled_until = 0.0
        self._throttle_timer: Timer | None = None
        self._finishing = False
        self._reason: str | None = None  # for which it finishes, if it is the peer's fault

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # What uvloop gives is one without being declared as one.
        self._transport = transport = cast(asyncio.Transport, transport)
        self._sender = Sender(
            transport,
            self._resources.io,
            self._resources.send_buffer,
            self._resources.bytes_out,
            self._resources.record_pipe,
            progressed=self._proceed,
            failed=self._sending_failed,
            is_short=self._is_memory_short,
        )
        name = transport.get_extra_info("peername")
        if name:
            self.client.address = host_address(name[0])
            self.client.peer = f"{name[0]}:{name[1]}"
        self.client.throttle = self.throttle
        self._resources.owner.made(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.client.is_closing = True
        self.client.throttle = no_connection
        self._stop_throttle()
        self._transport = None
        self._receiver.close()
        if self._sender is not None:
            self._sender.stop()
            self._sender = None
        slots, self._slots = self._slots, deque()
        self._slots_bytes = 0
        self._answers_bytes = 0
        self.client.budget = UNLIMITED
        self._resources.queued_requests -= max(0, len(slots) - 1)
        self._account()
        self._memory.finished(self)
        self._memory.answered(self)
        for slot in slots:
            # Other work goes on: what it changes is changed whole, only nobody hears of it.
            if slot.work is not None and slot.work is not self._running:
                slot.work.cancel()
        self.client.closed()
        self._resources.owner.lost(self)

    def get_buffer(self, _sizehint: int) -> memoryview | bytearray:
        # What is read has to be kept, if it is the beginning of a large request.
        return self._receiver.get_buffer(HEAD_BYTES if self._memory.is_used_up else -1)

    def buffer_updated(self, size: int) -> None:
        resources = self._resources
        receiver = self._receiver
        resources.bytes_in.value += size
        self.last_active = now = resources.now()
        self._outbox.note(self._sender, now, size)
        if self.client.is_closing:
            receiver.give_back()
            return
        receiver.buffer_updated(size)
        if receiver.has_frame:
            self._arriving_since = _NEVER
            if self._has_waited:
                self._has_waited = False
                self._memory.finished(self)
            self._proceed()
            return
        if not self._has_room and receiver.missing_bytes > self._room_bytes:
            self._make_room()
        if receiver.is_full and not self._memory.may_grow(self):
            self._waits_for_memory = self._has_waited = True
            self._pause_reading()
            self._memory.wait(self)
        self._account()

    def _make_room(self) -> None:
        """
        Let the socket hold a large frame while one is served: otherwise the peer stands still
        meanwhile, and each piece of the frame wakes this process and the peer.
        """
        self._has_room = True
        peer = None if self._transport is None else self._transport.get_extra_info("socket")
        if peer is not None:
            # Some systems refuse it once the peer is gone, of which the transport will tell.
            with suppress(OSError):
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LARGE_FRAME_ROOM_BYTES)

    def eof_received(self) -> bool:
        self._receiver.give_back()
        # Kafka closes as well: a client that has stopped sending waits for no answers.
        return False

    def pause_writing(self) -> None:
        assert self._sender is not None
        self._sender.pause()
        self._unread_since = self._resources.now()
        if self._transport is not None:
            self._unread_bytes = self._unread_left = self._transport.get_write_buffer_size()
            if not self._proceeding:  # it is TLS that has something to say
                self._account()

    def resume_writing(self) -> None:
        assert self._sender is not None
        self._unread_since = _NEVER
        self._sender.resume()
        self._proceed()

    # What the registry of connections calls

    def admit(self) -> None:
        """
        Begin to serve the peer, now that there is room for it.
        """
        self._is_served = True
        if self._receiver.has_frame or self._read_paused:
            self._proceed()

    def hold(self) -> None:
        """
        Do not read from the peer until it is admitted.
        """
        # Not at once: uvloop begins to read after ``connection_made``, whatever that has said.
        asyncio.get_running_loop().call_soon(self._proceed)

    @property
    def is_admitted(self) -> bool:
        """
        Whether the peer is served; otherwise it waits for another one to leave, or because of a
        quota.
        """
        return self._is_served

    @property
    def waiting(self) -> bool:
        """
        Whether the peer waits for an answer: then it is not idle, however long it is silent.
        """
        return bool(self._slots)

    @property
    def announced_bytes(self) -> int:
        """
        The size of the request that is arriving.
        """
        return int(self._receiver.announced_bytes)

    @property
    def stalled_since(self) -> float:
        """
        When the request began to arrive, or the peer to not read; infinity if neither is the case.
        """
        return min(self._arriving_since, self._unread_since)

    @property
    def unread_since(self) -> float:
        """
        When the peer began to not read; infinity if it reads.
        """
        return self._unread_since

    def look_whether_it_reads(self, now: float) -> None:
        """
        Move ``unread_since`` to *now* if the peer has read enough since the last look.
        """
        if self._unread_since == _NEVER or self._transport is None:
            return
        left = self._transport.get_write_buffer_size()
        if (self._unread_left - left) * READING_S >= max(1, self._unread_bytes) * LOOK_EVERY_S:
            self._unread_since = now
        self._unread_left = left

    def count_answer(self, size: int) -> None:
        """
        An answer that is being made takes *size* bytes more, or less if that is negative.
        """
        self._answers_bytes += size
        # A decrease comes with the bytes of the finished answer, which are accounted for.
        if size > 0:
            self._account()

    def may_answer(self, resume: Callable[[], None]) -> bool:
        """
        Return whether an answer may grow. If not, *resume* is called once it may.
        """
        return self._memory.may_answer(self, resume)

    def _is_memory_short(self) -> bool:
        return self._memory.is_used_up

    def _is_to_wait(self) -> bool:
        """
        Return whether the next request waits for memory for its answer.
        """
        if self._receiver.next_key() in ANSWERED_AT_ONCE:
            self._waits_to_answer = not self._memory.may_answer(self, self._answer_on)
        return self._waits_to_answer

    def _answer_on(self) -> None:
        if self._waits_to_answer:
            self._waits_to_answer = False
            self._proceed()

    def read_on(self) -> None:
        """
        There is memory for the rest of the request that is arriving.
        """
        self._waits_for_memory = False
        self._proceed()

    def go_on(self) -> None:
        """
        Serve further requests that have arrived.
        """
        if not self._receiver.has_frame:  # they have been served meanwhile
            return
        resources = self._resources
        if self._slots and resources.queued_requests >= resources.max_queued_requests:
            # Too much is unanswered. A long poll must not keep what stands behind it, for of a
            # peer that is not read from nobody hears that it is gone.
            self._hurry()
        else:
            self._proceed()

    def finish(self, reason: str | None = None) -> None:
        """
        Take no more from the peer, answer what it has asked, and close.
        """
        self._finishing = True
        self._reason = reason
        if self._throttle_timer is not None:
            self._stop_throttle()
            self._is_served = True
        self._pause_reading()
        self._hurry()
        self._proceed()

    def throttle(self, seconds: float) -> None:
        """
        Read nothing from the peer for so long, and start nothing that it has sent (KIP-219).
        """
        until = self._resources.now() + seconds
        if self._finishing or self.client.is_closing or until <= self._throttled_until:
            return
        self._stop_throttle()
        self._is_served = False
        self._throttled_until = until
        self._throttle_timer = self._resources.clock.call_later(seconds, self._end_throttle)

    def _end_throttle(self) -> None:
        self._throttle_timer = None
        self._is_served = True
        self._arriving_since = _NEVER  # The peer could not go on.
        self._proceed()

    def _stop_throttle(self) -> None:
        if self._throttle_timer is not None:
            self._throttle_timer.cancel()
            self._throttle_timer = None

    def close(self, reason: str | None = None) -> None:
        """
        Send what the transport has and close; the *reason* is logged, in the one line that tells
        why a client finds itself disconnected.
        """
        if self.client.is_closing:
            return
        self.client.is_closing = True
        if reason is not None:
            logger.info("closing the connection of %s: %s", self.client, reason)
        if self._transport is not None and self._sender is not None:
            self._sender.end()
            self._transport.close()

    def abort(self, reason: str | None = None) -> None:
        """
        Close without sending anything more. Work goes on: what it changes is changed whole.
        """
        if reason is not None and not self.client.is_closing:
            logger.info("closing the connection of %s: %s", self.client, reason)
        self.client.is_closing = True
        if self._transport is not None:
            self._transport.abort()

    # Requests

    def _proceed(self) -> None:
        """
        Start what may be started, send what may be sent, and read on or not.
        """
        sender = self._sender
        if self._proceeding or self.client.is_closing or sender is None:
            return
        resources = self._resources
        receiver = self._receiver
        slots = self._slots
        limit = resources.max_queued_requests
        memory = self._memory
        self._proceeding = True
        try:
            while (
                self._is_served
                and self._running is None
                and not sender.is_blocked
                and (not slots or resources.queued_requests < limit)
                and not (self._unseen and self._is_behind_unseen())
                and not (memory.used_bytes >= memory.limit_bytes and self._is_to_wait())
                and self._start_next(sender)
            ):
                if receiver.has_frame and not self._backlog.has_time():
                    break
        except InvalidFrame as error:  # nothing behind it can be understood
            receiver.close()
            self._finishing = True
            self._reason = str(error)
        finally:
            self._proceeding = False
        self._outbox.send(sender)
        self._read_or_not(sender)
        if slots or self.held_bytes or receiver.is_holding or sender.is_blocked:
            self._account()
        if memory.used_bytes >= memory.limit_bytes and not (
            self._answers_bytes or slots or sender.unread_bytes
        ):
            memory.answered(self)

    def _is_behind_unseen(self) -> bool:
        """
        Whether the next request has to wait, as in Kafka, for what those before it do. Batches can
        be appended meanwhile: they share an fsync.
        """
        return bool(self._receiver.next_key() != PRODUCE)

    def _read_or_not(self, sender: Sender) -> None:
        has_frame = self._receiver.has_frame
        is_held = has_frame or sender.is_blocked
        if (
            has_frame
            and self._is_served
            and self._running is None
            and not sender.is_blocked
            and not self._waits_to_answer
            and not (self._unseen and self._is_behind_unseen())
        ):
            self._backlog.add(self)
        if self._finishing:
            self._pause_reading()
            if not is_held and not self._slots:
                self.close(self._reason)
        elif is_held or not self._is_served or self._waits_for_memory:
            self._receiver.keep()
            self._pause_reading()
        elif self._read_paused and self._transport is not None:
            self._read_paused = False
            self._transport.resume_reading()

    def _account(self) -> None:
        """
        Tell the budget what is held for this peer.
        """
        receiver = self._receiver
        if not receiver.missing_bytes:
            self._arriving_since = _NEVER
        elif self._arriving_since == _NEVER:
            self._arriving_since = self._resources.now()
        held = int(receiver.held_bytes) + self._slots_bytes + self._answers_bytes
        if self._sender is not None:
            held += self._sender.unread_bytes
        if held != self.held_bytes:
            before, self.held_bytes = self.held_bytes, held
            self._memory.change(self, before, held)

    def _start_next(self, sender: Sender) -> bool:
        """
        Start the next request, and return whether there was one and time for it.
        """
        receiver, backlog = self._receiver, self._backlog
        is_large = receiver.next_bytes >= LARGE_BYTES
        if backlog.is_crowded or (is_large and not backlog.begin_large()):
            return False
        frame = receiver.take_frame()
        if frame is None:
            return False
        self._start(frame, sender)
        if sender.is_bulky:
            sender.flush()
        if is_large:
            backlog.end_large()
        return True

    def _start(self, frame: memoryview, sender: Sender) -> None:
        try:
            answer = self._resources.dispatch(frame, self.client)
        except CloseConnection as error:
            self._close_with(error, None)
            return
        if self._is_limited and self.client.is_authenticated:
            self._is_limited = False
            self._receiver.max_frame_bytes = self._resources.max_frame_bytes
        if answer is None:
            return
        if isinstance(answer, list):
            if self._slots:
                self._ready(self._queue(None), answer)
            else:
                sender.put(answer)
            return
        context, work = answer
        self._let_run(context, work)

    def _let_run(self, context: PendingRequest, work: Work[Any]) -> None:
        """
        Keep a place for the answer to a request that is not done in its first turn.
        """
        slot = self._queue(context)
        slot.work = work
        self._after(work, slot)
        if context.effects is None:
            self._running = work
            context.on_effects = lambda: self._effects_done(slot)
        else:
            self._let_wait(slot, context.effects)

    def _queue(self, context: PendingRequest | None) -> Slot:
        """
        The place of the next answer.
        """
        slot = Slot(context)
        if self._slots:
            self._resources.queued_requests += 1
        self._slots.append(slot)
        self._slots_bytes += slot.held_bytes
        return slot

    def _effects_done(self, slot: Slot) -> None:
        """
        The handler goes on, and waits after this.
        """
        assert slot.context is not None
        assert slot.context.effects is not None
        self._running = None
        if self.client.is_closing:
            assert slot.work is not None
            slot.work.cancel()
            return
        self._let_wait(slot, slot.context.effects)
        asyncio.get_running_loop().call_soon(self._proceed)

    def _let_wait(self, slot: Slot, effects: Effects) -> None:
        """
        Let the next request start.
        """
        if not effects.is_seen:
            self._unseen += 1
            slot.is_unseen = True
        if self._finishing or self._memory.is_used_up:
            slot.hurry()

    def _after(self, work: Work[Any], slot: Slot) -> None:
        """
        Answer with the result of *work* or its error, unless it is cancelled.
        """
        unfinished = self._resources.unfinished
        unfinished.add(work)

        def settle(outcome: Any) -> None:
            unfinished.discard(work)
            if self._running is work:
                self._running = None
            assert slot.context is not None
            slot.context.on_effects = None
            if not isinstance(outcome, asyncio.CancelledError):
                self._settled(slot, outcome)

        work.then(settle)

    # Answers

    def _settled(self, slot: Slot, outcome: Outcome) -> None:
        slot.work = None
        if slot.is_unseen:
            slot.is_unseen = False
            self._unseen -= 1
        is_closing = self.client.is_closing
        if is_closing and isinstance(outcome, list):
            return
        assert slot.context is not None, "what is answered at once does not settle"
        # For a peer that has left as well: this frees large answers in turns.
        try:
            parts = slot.context.buffers(outcome)
        except CloseConnection as error:
            if not is_closing:
                self._close_with(error, slot)
            without_frames(error)
            return
        if parts is None or isinstance(parts, list):
            if not is_closing:
                self._ready(slot, parts or [])
                slot.context.answered()
                self._proceed()
        else:
            if self._running is None:
                self._running = parts
            self._after(parts, slot)

    def _close_with(self, error: CloseConnection, slot: Slot | None) -> None:
        """
        Close the connection, after the last answer if there is one.

        Args:
            slot: the place of that answer; None if it is behind all others.
        """
        slots = self._slots
        if error.last and self._sender is not None and (not slots or slots[0] is slot):
            self._sender.put(error.last)
        self.close(str(error))

    def _ready(self, slot: Slot, parts: list[Buffer]) -> None:
        slot.parts = parts
        slot.done = True
        slots = self._slots
        if slot is not slots[0]:
            size = memory_of(parts)
            slot.held_bytes += size
            self._slots_bytes += size
            self._hurry_before(slot)
            return
        assert self._sender is not None
        while slots and slots[0].done:
            first = slots.popleft()
            self._slots_bytes -= first.held_bytes
            if slots:
                self._resources.queued_requests -= 1
            if first.parts:
                self._sender.put(first.parts)

    def _hurry(self) -> None:
        for slot in tuple(self._slots):
            slot.hurry()

    def _hurry_before(self, slot: Slot) -> None:
        for earlier in tuple(self._slots):
            if earlier is slot:
                return
            earlier.hurry()

    def _sending_failed(self, error: Exception) -> None:
        """
        The peer was promised bytes that cannot be read: it has to ask again.
        """
        logger.error("closing the connection of %s: %s", self.client, error)
        self.abort()

    def _pause_reading(self) -> None:
        if not self._read_paused and self._transport is not None:
            self._read_paused = True
            self._transport.pause_reading()
