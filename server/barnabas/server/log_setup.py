"""
The log of the process: one event on each line, on standard error.

As text, for people::

    2026-11-21 09:30:00.125 INFO  broker: listening on PLAINTEXT://127.0.0.1:9092 port=9092

or as one JSON object on each line, for machines. The ``extra`` of a call becomes fields of the
event: ``key=value`` at the end of the text, members of the object.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import IO, Any, Final

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def set_up_logging(level: str, form: str, stream: IO[str] | None = None) -> None:
    """
    Write all events of at least *level* to *stream*, as ``text`` or ``json``.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)


class TextFormatter(logging.Formatter):
    """
    Time, level, module, message, and fields.
    """

    def format(self, record: logging.LogRecord) -> str:
        name = record.name.removeprefix("barnabas.server.").removeprefix("barnabas.")
        line = f"{_time(record, ' ')} {record.levelname:<7} {name}: {record.getMessage()}"
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
            "message": record.getMessage(),
            **_fields(record),
        }
        trace = _trace(self, record, "")
        if trace:
            event["exception"] = trace
        return json.dumps(event, default=str, ensure_ascii=False)


def _time(record: logging.LogRecord, separator: str) -> str:
    moment = time.strftime(f"%Y-%m-%d{separator}%H:%M:%S", time.localtime(record.created))
    return f"{moment}.{int(record.msecs):03d}"


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


def _trace(formatter: logging.Formatter, record: logging.LogRecord, before: str) -> str:
    if record.exc_info and not record.exc_text:
        record.exc_text = formatter.formatException(record.exc_info)
    return before + record.exc_text if record.exc_text else ""
