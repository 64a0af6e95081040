"""
The options that all commands share, and how a command ends.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final, NoReturn, TypeVar

from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError, Disconnected, InvalidOption, NotABroker
from barnabas.client.settings import client_settings
from barnabas.protocol.errors import KafkaError
from barnabas.storage.config.option_values import ConfigError
from barnabas.storage.config.paths import local_path
from barnabas.storage.properties import read_properties
from barnabas.storage.readonly.command_line import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_USAGE,
    Terminated,
    exit_status,
)

SERVERS_VARIABLE: Final = "KAFKA_BOOTSTRAP_SERVERS"
"""The environment variable that many applications take the address of a cluster from."""
_DEFAULT_SERVER: Final = "localhost:9092"

T = TypeVar("T")
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
Command = Callable[[argparse.Namespace], None]


def subcommands(
    parser: argparse.ArgumentParser,
) -> Callable[[str, str, Command], argparse.ArgumentParser]:
    """
    Return a function that declares a subcommand of *parser* that talks to a cluster, from its name,
    a summary, and the function that runs it.
    """
    commands = parser.add_subparsers(required=True, metavar="COMMAND", prog=parser.prog)

    def add(name: str, summary: str, command: Command) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=parser.formatter_class,
        )
        added.set_defaults(parser=added)
        add_connection_options(added, command)
        return added

    return add


def add_connection_options(parser: argparse.ArgumentParser, command: Command) -> None:
    """
    Declare how to reach the cluster, by the option names of Kafka's tools (KIP-1147).
    """
    group = parser.add_argument_group("connection")
    group.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="a broker of the cluster, or several with commas; without it"
        f" {SERVERS_VARIABLE}, or else {_DEFAULT_SERVER}",
    )
    group.add_argument(
        "--command-config",
        type=local_path,
        metavar="FILE",
        help="client properties as for Kafka's tools, for example security.protocol=SASL_SSL",
    )
    group.add_argument(
        "--command-property",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="one client property; may be repeated",
    )
    parser.set_defaults(command=lambda options: run(command, options))


def run(command: Command, options: argparse.Namespace) -> int:
    """
    Run a command and return its exit status: 0 done, 1 failed, 2 used wrongly, and those of
    ``exit_status``.
    """

    def run_it() -> int:
        try:
            command(options)
        except (ConfigError, InvalidOption, UsageError) as error:
            print(f"barnabas: {error}", file=sys.stderr)
            return EXIT_USAGE
        except (ClientError, KafkaError) as error:
            print(f"barnabas: {error}", file=sys.stderr)
            return EXIT_FAILED
        return EXIT_DONE

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    _handle_signals(_interrupt)
    try:
        return exit_status(run_it)
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def _handle_signals(handler: Callable[[int, object], None]) -> None:
    """
    Let SIGINT and SIGTERM call *handler*, except those that the caller of the program ignores.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _interrupt(number: int, _frame: object) -> NoReturn:
    """
    End the command where it is; what it has printed is not lost.

    Raises:
        KeyboardInterrupt: always.
    """
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


class Interruptible:
    """
    Ends a command by a signal, but no write in progress.

    A signal ends ``each`` before its next item. A second one, for a cluster that does not answer,
    ends the command where it is.
    """

    def __init__(self) -> None:
        self._number = 0
        self._waits = False
        _handle_signals(self._asked)

    def each(self, items: Iterator[T]) -> Iterator[T]:
        """
        The *items*, which may take long to come.

        Raises:
            KeyboardInterrupt: a signal has come.
        """
        while True:
            if self._number:
                _interrupt(self._number, None)
            self._waits = True
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                self._waits = False
            yield item

    def _asked(self, number: int, frame: object) -> None:
        is_first, self._number = not self._number, number
        if self._waits or not is_first:
            self._waits = False
            _interrupt(number, frame)


class UsageError(Exception):
    """
    The arguments of a command contradict each other or do not fit the cluster.
    """


def properties_of(options: argparse.Namespace) -> dict[str, str]:
    """
    The client properties of a command line: of the file, then of single options, which win.

    Raises:
        ConfigError: the file cannot be read or parsed, or an option has no ``=``.
    """
    found: dict[str, str] = {}
    if options.command_config is not None:
        try:
            text = options.command_config.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not a text file"
            raise ConfigError(f"--command-config {options.command_config}: {reason}") from error
        found.update(read_properties(text))
    for each in options.command_property:
        name, equals, value = each.partition("=")
        if not equals:
            raise ConfigError(f"--command-property {each}: write NAME=VALUE")
        found[name.strip()] = value
    if options.bootstrap_server is not None:
        found["bootstrap.servers"] = options.bootstrap_server
    found.setdefault("bootstrap.servers", os.environ.get(SERVERS_VARIABLE) or _DEFAULT_SERVER)
    found.setdefault("client.id", "barnabas")
    return {name.lower(): value for name, value in found.items()}


def connect(options: argparse.Namespace) -> Cluster:
    """
    A client that is connected to the cluster that the options name.

    Raises:
        ConfigError, InvalidOption: a property is unknown or cannot be used.
        Disconnected: no broker can be reached. There is no retry: a person would wait for it.
        BrokerError: the broker refuses the credentials.
    """
    cluster = Cluster(client_settings(properties_of(options)))
    try:
        cluster.any()
    except NotABroker:
        raise
    except Disconnected as error:
        raise Disconnected(
            f"{error} Start one with barnabas serve, or name another with --bootstrap-server."
        ) from error
    return cluster
