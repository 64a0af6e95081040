"""
``barnabas dump-log`` prints the contents of the files of a log.

The output is that of Apache Kafka's ``kafka-dump-log.sh`` (DumpLogSegments), to the character. An
error that ends the dump is one line on standard error: the one above Kafka's stack trace. Files are
only read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import BinaryIO, Final

from barnabas.protocol.errors import KafkaError
from barnabas.storage.dump.failure import DumpFailure
from barnabas.storage.dump.options import parse
from barnabas.storage.dump.output import Output

KAFKA_VERSION: Final = "4.3.1"
"""The version of Kafka whose tool has the same output."""

EXIT_FAILED: Final = 1
EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141
"""The exit statuses of a shell for programs that SIGINT and SIGPIPE have ended."""


def main(arguments: Sequence[str], out: BinaryIO | None = None, err: BinaryIO | None = None) -> int:
    """
    Dump the files that *arguments* name, and return the exit status.
    """
    output = Output(out or sys.stdout.buffer, err or sys.stderr.buffer)
    try:
        status = _run(arguments, output)
        output.flush()
    except BrokenPipeError:
        _forget_stdout()
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return status


def _run(arguments: Sequence[str], output: Output) -> int:
    try:
        options = parse(arguments)
        if not arguments or options.has("help"):
            from barnabas.storage.dump.usage import DESCRIPTION  # noqa: PLC0415  # only for this

            return _show_usage(output, DESCRIPTION)
        if options.has("version"):
            output.print(KAFKA_VERSION, "\n")
            return 0
        if not options.has("files"):
            return _show_usage(output, 'Missing required argument "[files]"')
        from barnabas.storage.dump.run import dump  # noqa: PLC0415  # not for the help

        dump(options, output)
    except (DumpFailure, KafkaError) as error:
        failure = DumpFailure.of(error) if isinstance(error, KafkaError) else error
        output.remark(f'Exception in thread "main" {failure}')
        return EXIT_FAILED
    return 0


def _show_usage(output: Output, message: str) -> int:
    from barnabas.storage.dump.usage import usage  # noqa: PLC0415  # only for this

    output.remark(message)
    output.remark(usage().removesuffix("\n"))
    return EXIT_FAILED


def _forget_stdout() -> None:
    """
    Discard the rest of the output: the interpreter writes it at its end, and would fail again.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
