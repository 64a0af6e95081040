"""
The log of the process: one event on each line, on standard error.

As text, for people::

    2026-11-21 09:30:00.125 INFO  broker: listening on PLAINTEXT://127.0.0.1:9092 port=9092

or as one JSON object on each line, for machines. The ``extra`` of a call becomes fields of the
event: ``key=value`` at the end of the text, members of the object.

Peers cause most events and choose the names in them. So a sentence has ``MOST_CHARACTERS``, an
event is one line whatever is in the names, and one statement logs ``MOST_LINES`` in ``WINDOW_S``
seconds.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import IO, Any, Final

from barnabas.storage.clock import localtime, strftime

MOST_CHARACTERS: Final = 1000
MOST_LINES: Final = 1000
WINDOW_S: Final = 10.0

_CONTROL: Final = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def set_up_logging(level: str, form: str, stream: IO[str] | None = None) -> None:
    """
    Write all events of at least *level* to *stream*, as ``text`` or ``json``.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    handler.addFilter(FloodFilter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # No form has them, and to find them out takes a third of the time of an event.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # as Python's logging how-to has it


class FloodFilter(logging.Filter):
    """
    Lets ``MOST_LINES`` events of one kind pass in ``WINDOW_S`` seconds. A kind is one statement of
    the source: the logger, and the sentence before its arguments are put in. (Compiled modules have
    no lines.) Sentences without arguments are one kind for each logger: some libraries put the
    arguments in themselves.

    The last event that passes says that others are left out, as a field.
    """

    def __init__(self) -> None:
        super().__init__()
        self._passed: dict[tuple[str, str], int] = {}
        self._end_s = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        if not self._end_s - WINDOW_S <= record.created < self._end_s:
            self._end_s = record.created + WINDOW_S
            self._passed.clear()
        kind = (record.name, str(record.msg) if record.args else "")
        passed = self._passed[kind] = self._passed.get(kind, 0) + 1
        if passed == MOST_LINES:
            record.omitted = f"further ones like this, for up to {WINDOW_S:.0f} s"
        return passed <= MOST_LINES


class TextFormatter(logging.Formatter):
    """
    Time, level, module, message, and fields.
    """

    def format(self, record: logging.LogRecord) -> str:
        name = record.name.removeprefix("barnabas.server.").removeprefix("barnabas.")
        line = f"{_time(record, ' ')} {record.levelname:<7} {name}: {_sentence(record)}"
        for key, value in _fields(record).items():
            line += f" {key}={value}"
        return line + _trace(self, record, "\n")


class JsonFormatter(logging.Formatter):
    """
    The same as one JSON object.
    """

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "time": _time(record, "T"),
            "level": record.levelname,
            "logger": record.name,
            "message": _sentence(record),
            **_fields(record),
        }
        trace = _trace(self, record, "")
        if trace:
            event["exception"] = trace
        return json.dumps(event, default=str, ensure_ascii=False)


def _time(record: logging.LogRecord, separator: str) -> str:
    moment = strftime(f"%Y-%m-%d{separator}%H:%M:%S", localtime(record.created))
    return f"{moment}.{int(record.msecs):03d}"


def _sentence(record: logging.LogRecord) -> str:
    sentence = record.getMessage()
    if len(sentence) > MOST_CHARACTERS:
        sentence = f"{sentence[:MOST_CHARACTERS]}... ({len(sentence)} characters)"
    return sentence.translate(_CONTROL)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


def _trace(formatter: logging.Formatter, record: logging.LogRecord, before: str) -> str:
    if record.exc_info and not record.exc_text:
        record.exc_text = formatter.formatException(record.exc_info)
    return before + record.exc_text if record.exc_text else ""
