"""
Texts for messages and reports that never raise, whatever they show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import Final, TypeVar

T = TypeVar("T")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_REASON_CHARACTERS: Final = 200


def time_of(ms: int) -> datetime:
    """
    The moment that is *ms* milliseconds after 1970 UTC, exactly.

    Raises:
        ValueError: it is outside the years 1 to 9999.
    """
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        raise ValueError(f"{ms} ms since 1970 is outside the years 1 to 9999") from None


def shown_time(ms: int) -> str:
    """
    ``2026-11-28 01:02:03``, or ``253402300800000 ms`` if no ``datetime`` has that moment.
    """
    try:
        found = time_of(ms)
        return f"{found.year:04}-{found:%m-%d %H:%M:%S}"
    except ValueError:
        return f"{ms} ms"


def shown(value: object, most: int) -> str:
    """
    The ``repr`` of *value*, of at most *most* characters and three dots.
    """
    try:
        return shortened(repr(value), most)
    except Exception as error:
        return f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"


def shortened(text: str, most: int) -> str:
    """
    The first *most* characters of *text*.
    """
    return text if len(text) <= most else f"{text[:most]}..."


def on_one_line(text: str, most: int) -> str:
    """
    *text* without line breaks, control characters and halves of characters, shortened. An id or a
    name of a client then changes neither the lines of a report nor the terminal.
    """
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1]
        for character in shortened(text, most)
    )


def message_of(error: BaseException) -> str:
    """
    The type and the message of an error.
    """
    try:
        message = str(error)
    except Exception as another:
        message = f"<whose message raises {type(another).__name__}>"
    return f"{type(error).__name__}: {message}"


def reason(error: BaseException) -> str:
    """
    The type and the message of an error, on one line.
    """
    return on_one_line(message_of(error), _REASON_CHARACTERS)


def lines_or_reason(lines: Callable[[], Iterable[str]], what: str) -> list[str]:
    """
    The *lines* as far as they can be made, and then the reason why *what* has no more.
    """
    found: list[str] = []
    try:
        found.extend(lines())
    except Exception as error:
        found.append(f"{what} cannot be shown: {reason(error)}")
    return found


def within(seconds: float, work: Callable[[], T]) -> T:
    """
    The result of *work*, which runs in a thread of its own.

    Raises:
        TimeoutError: it does not end within *seconds* of real time; the thread is left behind.
        Exception: *work* raised it.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, name="barnabas-report", daemon=True).start()
    return future.result(seconds)
