"""
``barnabas format``: prepare log directories before the first start, as ``kafka-storage format``.

A start formats new directories by itself. The command is for what has to be there before anybody
can connect: the first users of a cluster whose clients authenticate themselves by SCRAM.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import re
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from barnabas.coordination.cluster.scram_credentials import (
    ScramMechanism,
    check_iterations,
    check_user,
    credential_record,
    salted_password,
)
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.internal_topics.metadata_records import UserScramCredentialRecord
from barnabas.server.cluster.formatting import prepare_directories
from barnabas.server.config.command_line import add_config_options, settings_from
from barnabas.server.security.files import read_file
from barnabas.storage.clock import SystemClock
from barnabas.storage.config.option_values import ConfigError
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.state_files.meta_properties import META_PROPERTIES

DEFAULT_ITERATIONS: Final = 4096
SALT_BYTES: Final = 24
FROM_FILE: Final = "@"
STANDARD_INPUT: Final = "-"
_SPEC: Final = re.compile(r"(?P<mechanism>[A-Za-z0-9-]+)=\[(?P<parts>.*)\]", re.DOTALL)
_PART: Final = re.compile(r'\s*(?P<key>[a-z]+)=(?:"(?P<quoted>[^"]*)"|(?P<plain>[^,]*))(?:,|$)')
_KEYS: Final = ("name", "password", "iterations", "salt", "saltedpassword")


class InvalidScram(ValueError):
    """
    The text of a SCRAM user is malformed. The sentence has nothing of the password.
    """


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Declare the options of the command.
    """
    parser.description = (
        "Prepare new log directories, with the first users if there are some. A start does it by"
        " itself where no users are needed."
    )
    add_config_options(parser)
    parser.add_argument("-t", "--cluster-id", metavar="ID", help="by default a random one")
    parser.add_argument(
        "-S",
        "--add-scram",
        action="append",
        default=[],
        metavar="USER",
        help="a user, as 'SCRAM-SHA-512=[name=alice,password=secret]', with iterations=N and"
        " salt=BASE64 if wanted; or @FILE with such users, one in a line, and @- for standard"
        " input, so that no password is among the arguments; may be repeated",
    )
    parser.add_argument(
        "-g",
        "--ignore-formatted",
        action="store_true",
        help="leave directories alone that are formatted already",
    )


def run(options: argparse.Namespace) -> int:
    """
    Run the command and return the exit status: 0 done, 1 failed, 2 used wrongly.
    """
    try:
        users = [parse_scram(text) for text in _users(options.add_scram)]
        settings = settings_from(options)
        if options.cluster_id is not None:
            settings.add("barnabas.cluster.id", options.cluster_id)
        config = settings.config()
    except (ConfigError, InvalidScram) as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return 2
    directories = list(dict.fromkeys([*config.log_directories, config.metadata_directory]))
    formatted = [each for each in directories if (each / META_PROPERTIES).exists()]
    if formatted and not options.ignore_formatted:
        print(
            f"barnabas: {formatted[0]} is formatted already; --ignore-formatted leaves it alone",
            file=sys.stderr,
        )
        return 1
    if formatted and users:
        print(
            f"barnabas: {formatted[0]} is formatted already: no user was added. Add users to a"
            " running broker with kafka-configs",
            file=sys.stderr,
        )
        return 0
    try:
        cluster_id = prepare_directories(
            directories,
            metadata_dir=config.metadata_directory,
            node_id=config.node_id,
            cluster_id=config.barnabas_cluster_id or None,
            files=DiskFiles(),
            now_ms=SystemClock().now_ms(),
            users=users,
        )
    except KafkaError as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return 1
    names = ", ".join(user.name for user in users)
    print(
        f"Formatted {', '.join(map(str, directories))} for cluster {cluster_id}"
        + (f", with the users {names}" if names else "")
    )
    return 0


def _users(given: Sequence[str]) -> Iterator[str]:
    """
    The text of each user, also of those in files.

    Raises:
        InvalidScram: a file cannot be read.
    """
    for text in given:
        if not text.startswith(FROM_FILE):
            yield text
            continue
        name = text.removeprefix(FROM_FILE)
        try:
            lines = sys.stdin.read() if name == STANDARD_INPUT else read_file(name).decode()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise InvalidScram(f"users cannot be read from {name}: {reason}") from None
        yield from filter(None, map(str.strip, lines.splitlines()))


def parse_scram(text: str) -> UserScramCredentialRecord:
    """
    The credential in a *text* such as ``SCRAM-SHA-512=[name=alice,password=secret]`` (Kafka
    ``ScramParser``).

    Raises:
        InvalidScram: it is malformed.
    """
    match = _SPEC.fullmatch(text.strip())
    if match is None:
        raise InvalidScram("a user must look like SCRAM-SHA-512=[name=alice,password=secret]")
    try:
        mechanism = ScramMechanism[match["mechanism"].upper().replace("-", "_")]
    except KeyError:
        raise InvalidScram(
            f"there is no mechanism {match['mechanism']}, but SCRAM-SHA-256 and SCRAM-SHA-512"
        ) from None
    parts = _parts(match["parts"])
    password, salted = parts.get("password"), parts.get("saltedpassword")
    if (password is None) == (salted is None):
        raise InvalidScram("a user needs a password or a saltedpassword, and not both")
    if salted is not None and "salt" not in parts:
        raise InvalidScram("a saltedpassword needs its salt")
    try:
        iterations = int(parts.get("iterations", str(DEFAULT_ITERATIONS)))
        check_user(parts.get("name", ""), mechanism)
        check_iterations(iterations)
    except ValueError:
        raise InvalidScram("the iterations of a user are a number") from None
    except KafkaError as error:
        raise InvalidScram(str(error)) from None
    salt = _decoded(parts["salt"]) if "salt" in parts else secrets.token_bytes(SALT_BYTES)
    return credential_record(
        parts["name"],
        mechanism,
        salt=salt,
        salted_password=(
            _decoded(salted)
            if salted is not None
            else salted_password(mechanism, password or "", salt, iterations)
        ),
        iterations=iterations,
    )


def _parts(text: str) -> Mapping[str, str]:
    parts: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None or match["key"] not in _KEYS:
            raise InvalidScram(f"a user has {', '.join(_KEYS)}, each as key=value")
        if match["key"] in parts:
            raise InvalidScram(f"{match['key']} is there twice")
        quoted = match["quoted"]
        parts[match["key"]] = match["plain"] if quoted is None else quoted
        at = match.end()
    return parts


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise InvalidScram("salt and saltedpassword are base64") from None
