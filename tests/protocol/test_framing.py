from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.framing import (
    CHUNK_BYTES,
    FIRST_ROOM_BYTES,
    HEAD_BYTES,
    KEPT_FRAME_BYTES,
    LEAST_ROOM_BYTES,
    TRUSTED_BYTES,
    FrameMemory,
    FrameReceiver,
    InvalidFrame,
)
from tests.support.bombs import memory_below
from tests.support.some import some

LIMIT = 100 * 1024 * 1024
MEMORY = FrameMemory()


def receiving(memory: FrameMemory = MEMORY, limit: int = LIMIT) -> FrameReceiver:
    return FrameReceiver(limit, memory)


def taken(receiver: FrameReceiver) -> list[memoryview]:
    frames: list[memoryview] = []
    while True:
        size = receiver.next_bytes
        frame = receiver.take_frame()
        assert size == len(frame or b"")
        if frame is None:
            return frames
        frames.append(frame)


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


def put(receiver: FrameReceiver, data: bytes) -> list[memoryview]:
    """
    Receive *data* in as many reads as the receiver wants.
    """
    frames = []
    while data:
        buffer = receiver.get_buffer()
        count = min(len(buffer), len(data))
        assert count > 0
        buffer[:count] = data[:count]
        data = data[count:]
        receiver.buffer_updated(count)
        frames += taken(receiver)
    return frames


def put_all(receiver: FrameReceiver, pieces: Iterable[bytes]) -> list[bytes]:
    return [bytes(frame) for piece in pieces for frame in put(receiver, piece)]


BODIES = st.lists(
    st.binary(min_size=1, max_size=40)
    | st.sampled_from([LEAST_ROOM_BYTES, CHUNK_BYTES - 4, CHUNK_BYTES, 3 * CHUNK_BYTES]).map(
        lambda size: size.to_bytes(4, "big") * (size // 4)
    ),
    max_size=6,
)


@given(bodies=BODIES, data=st.data())
def test_frames_are_the_same_however_the_stream_is_split(
    bodies: list[bytes], data: st.DataObject
) -> None:
    stream = framed(*bodies)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [
        stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
    ]
    receiver = receiving()

    assert bodies == put_all(receiver, pieces)
    assert not receiver.has_frame


TURNS = st.tuples(st.integers(0, 2), st.sampled_from([1, 3, 500, 40_000, 100_000]))


@given(turns=st.lists(TURNS, max_size=30))
def test_connections_that_share_memory_do_not_corrupt_each_others_frames(
    turns: list[tuple[int, int]],
) -> None:
    bodies = [[bytes([65 + i]) * size for size in (1, 700, 90_000, 5)] for i in range(3)]
    streams = [framed(*some) for some in bodies]
    receivers = [receiving() for _ in range(3)]
    frames: list[list[memoryview]] = [[], [], []]

    for i, size in [*turns, (0, len(streams[0])), (1, len(streams[1])), (2, len(streams[2]))]:
        frames[i] += put(receivers[i], streams[i][:size])
        streams[i] = streams[i][size:]

    assert bodies == [[bytes(frame) for frame in some] for some in frames]


def test_buffer_reserved_for_a_failed_read_is_not_given_to_another_connection() -> None:
    slow, quick = receiving(), receiving()
    buffer = slow.get_buffer()
    frame = put(quick, framed(b"quick"))[0]

    buffer[:8] = framed(b"slow")

    slow.buffer_updated(8)
    assert [b"slow"] == [bytes(frame) for frame in taken(slow)]
    assert b"quick" == bytes(frame)
    assert [b"again"] == [bytes(frame) for frame in put(quick, framed(b"again"))]
    assert b"quick" == bytes(frame)


def test_repeated_request_for_a_buffer_returns_the_same_one() -> None:
    """
    Otherwise each unsuccessful read would take new memory, which has to be zeroed.
    """
    receiver = receiving()

    first, second = receiver.get_buffer(), receiver.get_buffer()

    assert first.obj is second.obj
    assert len(first) == len(second)


@pytest.mark.parametrize("end", [FrameReceiver.give_back, FrameReceiver.close])
def test_closed_connections_release_their_memory_to_others(
    end: Callable[[FrameReceiver], None],
) -> None:
    """
    A thousand simultaneous connections would otherwise take a chunk each.
    """
    memory = FrameMemory()
    buffers = []
    for _ in range(100):
        receiver = receiving(memory)
        buffers.append(receiver.get_buffer())
        end(receiver)

    assert all(buffer.obj is buffers[0].obj for buffer in some(buffers))


def test_memory_is_released_only_once() -> None:
    """
    The connection's former memory may already be lent to another one.
    """
    first, second, third = (receiving() for _ in range(3))
    first.get_buffer()
    first.give_back()
    lent = second.get_buffer()

    first.give_back()

    assert third.get_buffer().obj is not lent.obj


def test_slow_read_keeps_its_memory_reserved() -> None:
    first, second, third = (receiving() for _ in range(3))
    first_buffer, second_buffer = first.get_buffer(), second.get_buffer()
    first_buffer[:9] = framed(b"first")
    first.buffer_updated(9)
    frame = put(third, framed(b"third"))[0]

    second_buffer[:20] = framed(b"second", b"second")

    second.buffer_updated(20)
    assert [b"second"] * 2 == [bytes(frame) for frame in taken(second)]
    assert b"third" == bytes(frame)


def test_frames_are_writable() -> None:
    """
    Offsets are assigned in place, both in a chunk and in a separate buffer.
    """
    for size in (5, 2 * CHUNK_BYTES):
        frame = put(receiving(), framed(b"x" * size))[0]

        frame[:2] = b"ab"

        assert b"abx" == bytes(frame[:3])


def test_large_frame_is_received_into_its_final_buffer() -> None:
    receiver = receiving()
    stream = framed(b"x" * 1_000_000)
    assert [] == put(receiver, stream[:1000])

    buffer = receiver.get_buffer()
    buffer[:] = stream[1000:]
    receiver.buffer_updated(len(buffer))
    frames = taken(receiver)

    assert len(stream) - 1000 == len(buffer)
    assert buffer.obj is frames[0].obj
    assert 1_000_000 == len(frames[0])


def test_receiver_knows_how_many_bytes_of_a_frame_are_missing() -> None:
    receiver = receiving()
    stream = framed(b"x" * 1_000_000)

    missing = []
    for piece in (stream[:2], stream[2:1000], stream[1000:-1], stream[-1:]):
        put(receiver, piece)
        missing.append(receiver.missing_bytes)

    assert [0, 1_000_004 - 1000, 1, 0] == missing


def test_only_the_beginning_of_a_frame_behind_a_large_one_is_read_into_the_chunk() -> None:
    """
    It would have to be copied if it is large too. After a small frame, whole chunks are read again.
    """
    receiver = receiving()
    assert len(receiver.get_buffer()) >= LEAST_ROOM_BYTES
    receiver.give_back()

    put(receiver, framed(b"x" * 300_000))
    after_large = receiver.get_buffer()
    receiver.give_back()
    put(receiver, framed(b"small"))

    assert HEAD_BYTES == len(after_large)
    assert len(receiver.get_buffer()) >= LEAST_ROOM_BYTES


@pytest.mark.parametrize("size", [20_000, 500_000, KEPT_FRAME_BYTES])
def test_memory_is_reused_once_it_is_no_longer_referenced(size: int) -> None:
    receiver = receiving()
    bodies = [bytes([number]) * size for number in range(60)]
    kept = [put(receiver, framed(body))[0] for body in bodies]
    assert bodies == kept
    kept.clear()

    owners = []
    for body in bodies:
        [frame] = put(receiver, framed(body))
        assert body == frame
        owners.append(frame.obj)
        del frame

    # One of the chunk's size, and one or two for frames that do not fit into it.
    assert len({id(owner) for owner in owners}) <= 3


def test_slice_of_a_frame_keeps_its_memory() -> None:
    receiver = receiving()
    parts = [
        put(receiver, framed(bytes([number]) * 200_000))[0][100_000:100_010] for number in range(10)
    ]

    assert [bytes([number]) * 10 for number in range(10)] == parts


def test_frame_beyond_the_trusted_size_arrives_whole() -> None:
    body = bytes(range(256)) * (3 * TRUSTED_BYTES // 256) + b"end"

    assert [body] == put_all(receiving(), [framed(body)])


def test_announced_frames_take_little_memory_beyond_a_total() -> None:
    """
    A thousand clients that announce 1 MB and send nothing would take 1 GB.
    """
    memory = FrameMemory()
    claim = struct.pack(">i", 1_000_000) + b"beginning"
    most = TRUSTED_BYTES + 1000 * (FIRST_ROOM_BYTES + 1000)

    with memory_below(most + 2 * CHUNK_BYTES):
        receivers = [receiving(memory) for _ in range(1000)]
        for receiver in receivers:
            put(receiver, claim)

    rooms = [receiver.held_bytes for receiver in receivers]
    assert (1_000_000, FIRST_ROOM_BYTES) == (max(rooms), min(rooms))


def test_announced_size_of_a_very_large_frame_is_never_trusted() -> None:
    """
    Its producer copies so much that one more copy hardly matters.
    """
    receiver = receiving(FrameMemory())

    put(receiver, struct.pack(">i", LIMIT) + b"beginning")

    assert FIRST_ROOM_BYTES == receiver.held_bytes
    assert LIMIT == receiver.announced_bytes


def test_frame_buffer_is_at_most_twice_the_received_bytes() -> None:
    receiver = receiving(FrameMemory())
    put(receiver, struct.pack(">i", LIMIT))
    arrived = 0
    for _ in range(500):
        put(receiver, b"x" * 10_007)
        arrived += 10_007

        assert receiver.held_bytes <= max(FIRST_ROOM_BYTES, 2 * arrived)


@pytest.mark.parametrize("ended", ["whole", "closed"])
def test_trust_is_returned_when_a_frame_is_complete_or_its_connection_closed(ended: str) -> None:
    memory = FrameMemory()
    receiver = receiving(memory)
    put(receiver, framed(b"x" * 500_000)[:100])
    believed = memory.trusted_bytes
    if ended == "whole":
        put(receiver, b"x" * (500_000 + 4 - 100))
    else:
        receiver.close()

    assert 500_000 == believed
    assert 0 == memory.trusted_bytes


def test_frames_that_cannot_be_handled_yet_keep_no_chunk() -> None:
    memory = FrameMemory()
    receiver, other = receiving(memory), receiving(memory)
    stream = framed(b"first", b"second", b"third")
    receiver.get_buffer()[: len(stream)] = stream
    receiver.buffer_updated(len(stream))
    first = receiver.take_frame()

    receiver.keep()

    chunk = other.get_buffer().obj
    assert first is not None
    rest = taken(receiver)
    assert chunk is first.obj
    assert [b"second", b"third"] == [bytes(frame) for frame in rest]
    assert all(frame.obj is not chunk for frame in some(rest))


def test_idle_connections_hold_no_memory() -> None:
    put(receiving(), framed(b"warm up"))
    tracemalloc.start()
    try:
        receivers = [receiving() for _ in range(1000)]
        for receiver in receivers:
            put(receiver, framed(b"request"))

        assert tracemalloc.get_traced_memory()[0] < CHUNK_BYTES + 500 * len(receivers)
    finally:
        tracemalloc.stop()


def test_frame_of_exactly_the_maximum_size_is_accepted() -> None:
    receiver = receiving(limit=5)

    assert [b"12345"] == put_all(receiver, [framed(b"12345")])
    receiver.max_frame_bytes = 6
    assert [b"123456"] == put_all(receiver, [framed(b"123456")])


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        (struct.pack(">i", LIMIT + 1), "a frame of 104857601 bytes, 104857600 are the limit"),
        (struct.pack(">i", 0), "a frame of 0 bytes"),
        (struct.pack(">i", -1), "a frame of -1 bytes"),
        (bytes.fromhex("16030100f8010000"), "a TLS handshake on a listener that does not"),
        (b"GET / HTTP/1.1\r\n", "an HTTP request on a listener"),
        (b"POST /topics HTTP/1.1\r\n", "an HTTP request on a listener"),
        (b"PRI * HTTP/2.0\r\n", "an HTTP request on a listener"),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_invalid_frame_size_is_refused(start: bytes, reason: str, at_once: bool) -> None:
    """
    The message helps users who have configured the wrong port.
    """
    pieces = [start] if at_once else [start[i : i + 1] for i in range(len(start))]

    with pytest.raises(InvalidFrame, match=reason):
        put_all(receiving(), pieces)


def test_frames_before_a_refused_one_are_delivered() -> None:
    receiver = receiving()
    stream = framed(b"first", b"second") + b"GET /"
    receiver.get_buffer()[: len(stream)] = stream
    receiver.buffer_updated(len(stream))

    frames = [receiver.take_frame(), receiver.take_frame()]
    assert [b"first", b"second"] == [bytes(frame) for frame in frames if frame is not None]
    with pytest.raises(InvalidFrame):
        receiver.take_frame()
