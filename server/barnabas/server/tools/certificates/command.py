"""
``barnabas certificates`` makes what a listener with TLS needs.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

from barnabas.storage.config.paths import local_path

DAYS: Final = 365
_LONGEST_DAYS: Final = 36_500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Make a certificate authority and a certificate of a broker, in PEM. A second run keeps the"
        " authority and adds certificates, and no file is overwritten."
    )
    parser.add_argument(
        "--output", type=local_path, required=True, metavar="DIR", help="where the files go"
    )
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name or an address of the broker, beside localhost; may be repeated",
    )
    parser.add_argument(
        "--client",
        action="append",
        default=[],
        metavar="NAME",
        help="a client, whose certificate is NAME.pem with the subject CN=NAME; may be repeated",
    )
    parser.add_argument(
        "--days", type=int, default=DAYS, metavar="N", help=f"how long they last; default: {DAYS}"
    )


def run(options: argparse.Namespace) -> int:
    """
    Make the files and return the exit status: 0 done, 1 failed, 2 used wrongly.
    """
    if not 1 <= options.days <= _LONGEST_DAYS:
        print(f"barnabas: --days is from 1 to {_LONGEST_DAYS}, not {options.days}", file=sys.stderr)
        return 2
    try:
        from barnabas.server.tools.certificates.authority import (  # noqa: PLC0415  # an extra
            CannotIssue,
            issue,
        )
    except ImportError:
        print(
            "barnabas: certificates need the library cryptography:"
            " pip install 'barnabas[security]'",
            file=sys.stderr,
        )
        return 1
    try:
        for path in issue(options.output, options.host, options.client, options.days):
            print(path)
    except CannotIssue as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"barnabas: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0
