"""
The command ``barnabas backup``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from barnabas.storage.config.paths import local_path
from barnabas.storage.readonly.command_line import (
    EXIT_DONE,
    EXIT_FAILED,
    exit_status,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Declare the options.
    """
    parser.description = (
        "Copy log directories into a new directory, also while a broker serves them. A broker can"
        " start on a copy of that. Segments that have not changed since the backup before take no"
        " room."
    )
    parser.add_argument(
        "directories",
        nargs="+",
        type=local_path,
        metavar="DIR",
        help="a directory of log.dirs; name all of a node together",
    )
    parser.add_argument(
        "--to",
        required=True,
        type=local_path,
        metavar="TARGET",
        help="where the backups are, each in a directory that is named after its time",
    )
    parser.add_argument(
        "--keep",
        type=_positive,
        metavar="N",
        help="remove all backups in TARGET afterwards but the newest N",
    )


def run(options: argparse.Namespace) -> int:
    """
    Make a backup. The exit status is 0, or 1 with a line on standard error.
    """
    return exit_status(lambda: _run(options.directories, options.to, options.keep))


def _run(directories: list[Path], target: Path, keep: int | None) -> int:
    from barnabas.storage.backup.backups import back_up, prune  # noqa: PLC0415  # not for --help
    from barnabas.storage.backup.log_copy import BackupFailed  # noqa: PLC0415  # likewise
    from barnabas.storage.clock import SystemClock  # noqa: PLC0415  # likewise
    from barnabas.storage.explain.units import rounded_size  # noqa: PLC0415  # likewise
    from barnabas.storage.units import counted  # noqa: PLC0415  # likewise

    try:
        backup = back_up(directories, target, SystemClock())
    except BackupFailed as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_FAILED
    copied = backup.copied
    said = (
        f"{backup.path}: {counted(copied.logs, 'log')} with {counted(copied.segments, 'segment')},"
        f" {rounded_size(copied.copied_bytes)} copied"
    )
    if backup.previous is not None:
        said += f", {rounded_size(copied.linked_bytes)} shared with {backup.previous.name}"
    print(said)
    if keep is not None:
        for path in prune(target, keep):
            print(f"{path} removed")
    return EXIT_DONE


def _positive(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is no number from 1 on")
    return int(text)
