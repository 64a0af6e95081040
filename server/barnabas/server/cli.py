"""
The ``barnabas`` command.

Each subcommand imports its modules when it runs: a tool that reads a file need not load the server.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.server.config import Settings
    from barnabas.storage.clock import Clock
    from barnabas.storage.explain.known import ClusterSettings
    from barnabas.storage.fs.interface import Files

EXIT_USAGE = 2
_PROGRAM: Final = "barnabas"


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the command line and return the exit status: 0 done, 1 failed, 2 used wrongly.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["dump-log"]:
        # It parses its options as Apache Kafka's tool does, including help and errors.
        from barnabas.storage.dump.command import main as dump_log

        return dump_log(given[1:])
    options, unknown = _parser(_command_in(given)).parse_known_args(given)
    if unknown:
        from barnabas.storage.config.option_values import did_you_mean

        known = options.parser._option_string_actions
        hint = did_you_mean(unknown[0].partition("=")[0], known)
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    command: Callable[[argparse.Namespace], int] = options.command
    return command(options)


def _command_in(given: Sequence[str]) -> str | None:
    """
    The command; None if an option comes first, such as --help for all commands.
    """
    return given[0] if given and not given[0].startswith("-") else None


def _parser(command: str | None, *, whole: bool = False) -> argparse.ArgumentParser:
    """
    The parser of a command line with *command*; the options of other commands are loaded only if
    the *whole* parser is needed.

    An unknown command ends the process with an error that suggests the nearest one.
    """
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="A message broker: Apache Kafka's wire protocol on Apache Kafka's own files.",
        formatter_class=_Help,
    )
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="show program's version number and exit"
    )
    # Without a name argparse prepares to print a usage, which takes it a millisecond.
    commands = parser.add_subparsers(required=True, metavar="COMMAND", prog=_PROGRAM)
    for name in _COMMANDS if command is None or command not in _COMMANDS else (command,):
        says, add_options = _COMMANDS[name]
        of_command = commands.add_parser(name, help=says, formatter_class=_Help)
        if whole or name == command:
            of_command.set_defaults(parser=of_command)
            add_options(of_command)
    if command is not None and command not in _COMMANDS:
        from barnabas.storage.config.option_values import did_you_mean

        hint = did_you_mean(command, _COMMANDS)
        parser.error(f"unknown command {command}{hint or ', see barnabas --help'}")
    return parser


class _Help(argparse.HelpFormatter):
    """
    Help as wide as the terminal.

    argparse makes a formatter for each option, and gets the width from ``shutil``, which imports
    archivers.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    with suppress(OSError, ValueError):
        return int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size().columns
    return 80


class _Version(argparse.Action):
    """
    ``--version``; to look it up takes a tenth of the time of a start.
    """

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        from barnabas.server.tools.doctor.facts import Facts

        form = "compiled" if Facts().is_compiled() else "plain Python"
        print(f"{parser.prog} {version('barnabas')} ({form})")
        parser.exit()


def _add_serve(parser: argparse.ArgumentParser) -> None:
    from barnabas.server.config.command_line import add_config_options

    parser.description = (
        "Run a broker until SIGTERM or Ctrl-C. Options come from --config, then from KAFKA_*"
        " variables (KAFKA_LOG_RETENTION_MS is log.retention.ms), then from --set; later ones win."
    )
    place = parser.add_mutually_exclusive_group()
    add_config_options(parser, place, config_help="a server.properties, as Apache Kafka's")
    place.add_argument(
        "--ephemeral", action="store_true", help="keep the data only while the broker runs"
    )
    parser.add_argument(
        "--read-only",
        action="store_true",
        help="show the log directory of a broker, of Apache Kafka too, without changing a byte of"
        " it (barnabas.read.only)",
    )
    parser.add_argument("--log-level", metavar="LEVEL", help="DEBUG, INFO, WARNING or ERROR")
    control = parser.add_argument_group(
        "for tests in other languages (docs/testing.md); needs the extra http"
    )
    control.add_argument(
        "--test-control",
        metavar="[HOST:]PORT",
        help="let a test move the clock, order faults, and seed and read topics, over HTTP on this"
        " address; the data are in memory unless a log directory is given",
    )
    control.add_argument(
        "--test-control-host",
        action="append",
        default=[],
        metavar="NAME",
        help="allow that other machines reach the control, which they call by this name; may be"
        " repeated",
    )
    control.add_argument(
        "--test-clock",
        choices=("running", "still"),
        help="whether the clock of the broker stands still between two moves",
    )
    parser.set_defaults(command=_serve)


def _serve(options: argparse.Namespace) -> int:
    # A start makes hardly any garbage. The broker enables the collector again.
    gc.disable()
    from barnabas.server.config.command_line import settings_from
    from barnabas.server.log_setup import set_up_logging
    from barnabas.storage.config.option_values import ConfigError

    if options.test_control is None and (options.test_control_host or options.test_clock):
        print("barnabas: --test-control-host and --test-clock need --test-control", file=sys.stderr)
        return EXIT_USAGE
    if options.read_only and (options.ephemeral or options.test_control is not None):
        print(
            "barnabas: --read-only shows a directory that exists: not with --ephemeral or"
            " --test-control",
            file=sys.stderr,
        )
        return EXIT_USAGE
    if options.read_only:
        options.assignments.append("barnabas.read.only=true")
    if options.log_level is not None:
        options.assignments.append(f"barnabas.log.level={options.log_level.upper()}")
    try:
        settings = settings_from(options)
        config = settings.config()
    except ConfigError as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_USAGE
    set_up_logging(config.barnabas_log_level, config.barnabas_log_format)
    if options.test_control is not None:
        return _serve_with_control(options, settings)

    from barnabas.server.network.event_loop import load_event_loop

    load_event_loop()
    from barnabas.server.process import run

    return run(config, settings, ephemeral=options.ephemeral)


def _serve_with_control(options: argparse.Namespace, settings: Settings) -> int:
    from barnabas.server.http.address import Address, BadAddress
    from barnabas.server.http.extra import MissingExtra, require_http

    try:
        address = Address.parse(options.test_control)
        if not address.is_loopback and not options.test_control_host:
            raise BadAddress(
                f"{address} is not on the loopback interface, and every host that reaches it"
                " controls the broker; --test-control-host NAME allows that, for clients that ask"
                f" for http://NAME:{address.port}"
            )
        require_http()
    except (BadAddress, MissingExtra) as error:
        print(f"barnabas: --test-control: {error}", file=sys.stderr)
        return EXIT_USAGE
    from barnabas.testing.control.process import Options, run

    return run(
        settings,
        Options(
            address,
            hosts=options.test_control_host,
            clock=options.test_clock or "running",
            ephemeral=options.ephemeral,
        ),
    )


def _add_format(parser: argparse.ArgumentParser) -> None:
    from barnabas.server.tools.format import add_arguments

    add_arguments(parser)
    parser.set_defaults(command=_format)


def _format(options: argparse.Namespace) -> int:
    from barnabas.server.tools.format import run

    return run(options)


def _add_healthcheck(parser: argparse.ArgumentParser) -> None:
    from barnabas.storage.config.paths import local_path

    parser.description = (
        "Ask a broker for its API versions; exit 0 if it answers, 1 if not. Without an address, ask"
        " the one that --config and the KAFKA_* variables describe, on this machine."
    )
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT")
    parser.add_argument(
        "--tls", action="store_true", help="--bootstrap-server speaks TLS; any certificate will do"
    )
    parser.add_argument("--config", type=local_path, metavar="FILE", help="as for serve")
    parser.add_argument("--timeout", type=float, default=3.0, metavar="SECONDS")
    parser.set_defaults(command=_healthcheck)


def _healthcheck(options: argparse.Namespace) -> int:
    from barnabas.server.tools.healthcheck import (
        BadBrokerAddress,
        address_of,
        check,
        configured_address,
    )
    from barnabas.storage.config.option_values import ConfigError

    try:
        if options.bootstrap_server is not None:
            host, port = address_of(options.bootstrap_server)
            has_tls = options.tls
        else:
            host, port, has_tls = configured_address(options.config, os.environ)
    except (BadBrokerAddress, ConfigError) as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_USAGE
    failure = check(host, port, options.timeout, has_tls=has_tls)
    if failure is not None:
        print(f"barnabas: {host}:{port}: {failure}", file=sys.stderr)
        return 1
    return 0


def _add_doctor(parser: argparse.ArgumentParser) -> None:
    from barnabas.server.tools.doctor.command import add_arguments

    add_arguments(parser)
    parser.set_defaults(command=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    from barnabas.server.tools.doctor.command import run

    return run(options)


def _add_graduate(parser: argparse.ArgumentParser) -> None:
    from barnabas.server.tools.graduate.command import add_arguments

    add_arguments(parser)
    parser.set_defaults(command=_graduate)


def _graduate(options: argparse.Namespace) -> int:
    from barnabas.server.tools.graduate.command import run

    return run(options)


def _add_explain(parser: argparse.ArgumentParser) -> None:
    from barnabas.storage.explain.command import add_arguments

    add_arguments(parser)
    parser.set_defaults(command=_explain)


def _explain(options: argparse.Namespace) -> int:
    from barnabas.server.dynamic_config.known_cluster import read_cluster
    from barnabas.storage.explain.command import run

    return run(options, read_cluster)


def _add_verify(parser: argparse.ArgumentParser) -> None:
    from barnabas.storage.verify.command import add_arguments

    add_arguments(parser)
    parser.set_defaults(command=_verify)


def _verify(options: argparse.Namespace) -> int:
    from barnabas.server.cluster.offline_topics import read_topics
    from barnabas.storage.verify.command import run

    return run(options, read_topics)


def _add_backup(parser: argparse.ArgumentParser) -> None:
    from barnabas.storage.backup.command import add_arguments

    add_arguments(parser)
    parser.set_defaults(command=_backup)


def _backup(options: argparse.Namespace) -> int:
    from barnabas.storage.backup.command import run

    return run(options)


def _add_spark(parser: argparse.ArgumentParser) -> None:
    from barnabas.pipeline.jobs.cli import add_arguments

    add_arguments(parser, _read_cluster)


def _read_cluster(options: argparse.Namespace, files: Files, clock: Clock) -> ClusterSettings:
    from barnabas.server.dynamic_config.known_cluster import read_cluster

    return read_cluster(options, files, clock)


def _add_certificates(parser: argparse.ArgumentParser) -> None:
    from barnabas.server.tools.certificates.command import add_arguments

    add_arguments(parser)
    parser.set_defaults(command=_certificates)


def _certificates(options: argparse.Namespace) -> int:
    from barnabas.server.tools.certificates.command import run

    return run(options)


def _add_completion(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print a script that completes the commands and options of barnabas in a shell. bash looks"
        " for it as ~/.local/share/bash-completion/completions/barnabas, zsh as _barnabas in a"
        " directory of $fpath, and tcsh needs a line with source FILE in ~/.tcshrc."
    )
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    parser.set_defaults(command=_completion)


def _completion(options: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        print(
            "barnabas: completion needs the extra completion: pip install 'barnabas[completion]'",
            file=sys.stderr,
        )
        return 1
    from barnabas.storage.readonly.command_line import exit_status

    script = shtab.complete(_parser(None, whole=True), options.shell)
    return exit_status(lambda: print(script) or 0)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Explain the named options, or list every option: as a table on a terminal, otherwise as"
        " the whole reference in Markdown."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as log.retention.ms")
    parser.add_argument(
        "--markdown", action="store_true", help="the whole reference on a terminal, too"
    )
    parser.set_defaults(command=_options)


def _options(options: argparse.Namespace) -> int:
    from barnabas.server.config.reference import explanation, reference
    from barnabas.storage.config.option_values import UnknownOption
    from barnabas.storage.readonly.command_line import exit_status

    def print_them() -> int:
        if options.names:
            print("\n\n".join(map(explanation, options.names)))
        elif sys.stdout.isatty() and not options.markdown:
            _print_overview()
        else:
            print(reference(), end="")
        return 0

    try:
        return exit_status(print_them)
    except UnknownOption as error:
        hint = "" if error.nearest else "; barnabas options lists all"
        print(f"barnabas: {error}{hint}", file=sys.stderr)
        return EXIT_USAGE


def _print_overview() -> None:
    from barnabas.client.terminal.output import print_table
    from barnabas.server.config.reference import overview

    for title, rows in overview():
        print(title)
        print_table(("OPTION", "TYPE", "DEFAULT"), rows)
        print()
    print("barnabas options NAME explains one; --markdown prints the whole reference.")


def _terminal(name: str) -> Callable[[argparse.ArgumentParser], None]:
    def add(parser: argparse.ArgumentParser) -> None:
        from importlib import import_module

        import_module(f"barnabas.client.terminal.{name}").add_arguments(parser)

    return add


_COMMANDS: Final[Mapping[str, tuple[str, Callable[[argparse.ArgumentParser], None]]]] = {
    "serve": ("run a broker", _add_serve),
    "topics": ("list, describe, create, alter and delete topics", _terminal("topics")),
    "produce": ("write lines or JSON to a topic", _terminal("produce")),
    "consume": ("print the records of a topic", _terminal("consume")),
    "groups": ("list, describe, reset and delete groups", _terminal("groups")),
    "format": ("prepare log directories, with the first users", _add_format),
    "healthcheck": ("ask a broker whether it answers", _add_healthcheck),
    "doctor": ("check this machine for problems before the first start", _add_doctor),
    "explain": ("explain why a log is as it is", _add_explain),
    "verify": ("check every file of a log directory", _add_verify),
    "backup": ("copy log directories, also while a broker serves them", _add_backup),
    "graduate": ("prepare a directory for a cluster of Apache Kafka", _add_graduate),
    "spark": ("jobs on logs that run on Apache Spark", _add_spark),
    "dump-log": ("print what is in the files of a log", lambda _parser: None),
    "certificates": ("make an authority and certificates for TLS", _add_certificates),
    "completion": ("print a script that completes commands in a shell", _add_completion),
    "options": ("explain every option of the broker, or one", _add_options),
}
"""
The help of each command, and the function that adds its options to its parser.
"""
