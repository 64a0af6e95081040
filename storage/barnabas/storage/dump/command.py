"""
``barnabas dump-log`` prints the contents of the files of a log.

The output is that of Apache Kafka's ``kafka-dump-log.sh`` (DumpLogSegments), to the character. An
error that ends the dump is a line on standard error, the one above Kafka's stack trace; a second
line says it in words on a terminal. Files are only read.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import BinaryIO, Final, TextIO

from barnabas.protocol.errors import KafkaError
from barnabas.storage.dump.failure import DumpFailure
from barnabas.storage.dump.options import parse
from barnabas.storage.dump.output import Output
from barnabas.storage.readonly.command_line import EXIT_FAILED, exit_status

KAFKA_VERSION: Final = "4.3.1"
"""The version of Kafka whose tool has the same output."""


def main(arguments: Sequence[str], out: BinaryIO | None = None, err: BinaryIO | None = None) -> int:
    """
    Dump the files that *arguments* name, and return the exit status.
    """
    output = Output(out or _bytes_of(sys.stdout), err or _bytes_of(sys.stderr))

    def run() -> int:
        status = _run(arguments, output)
        output.flush()
        return status

    return exit_status(run)


def _bytes_of(stream: TextIO | None) -> BinaryIO:
    """
    The bytes behind *stream*, which is None if the process was started without it.
    """
    return io.BytesIO() if stream is None else stream.buffer


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
        # Scripts compare what they capture with Kafka's tool; a person gets a sentence as well.
        if failure.hint and sys.stderr is not None and sys.stderr.isatty():
            output.remark(f"barnabas: {failure.hint}")
        return EXIT_FAILED
    return 0


def _show_usage(output: Output, message: str) -> int:
    from barnabas.storage.dump.usage import usage  # noqa: PLC0415  # only for this

    output.remark(message)
    output.remark(usage().removesuffix("\n"))
    return EXIT_FAILED
