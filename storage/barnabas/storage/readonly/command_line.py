"""
Functions that the commands for log directories share: the limit of descriptors
 and the exit status of a command that prints.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

EXIT_DONE: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141
EXIT_TERMINATED: Final = 143
"""The last three are those of a shell for programs that SIGINT, SIGPIPE and SIGTERM have ended."""


class Terminated(KeyboardInterrupt):
    """
    SIGTERM ends the command, which may finish first as after Ctrl-C.
    """


def allow_many_files() -> None:
    """
    Raise the limit of descriptors: a log with thousands of segments has as many indexes.
    """
    import resource  # noqa: PLC0415  # only here, and not on every system

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def exit_status(command: Callable[[], int]) -> int:
    """
    Run *command*, which prints, and return its exit status.

    The status is 141 if the reader has closed the pipe, 130 after Ctrl-C, 143 after ``Terminated``,
    and 1 with a line on standard error if the output cannot be written.
    """
    try:
        status = command()
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return EXIT_BROKEN_PIPE
    except OSError as error:
        _discard_output()
        where = "" if error.filename is None else f"{error.filename}: "
        print(f"barnabas: {where}{error.strerror or error}", file=sys.stderr)
        return EXIT_FAILED
    except Terminated:
        return EXIT_TERMINATED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return status


def _discard_output() -> None:
    """
    Discard the rest of the output: the interpreter writes it at its end, and would fail again.
    """
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
