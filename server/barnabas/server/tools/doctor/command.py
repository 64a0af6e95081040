"""
The command line of the doctor.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from barnabas.server.config import BrokerConfig, Settings
from barnabas.server.config.command_line import add_config_options, settings_from
from barnabas.server.resources.descriptors import raise_descriptor_limit
from barnabas.server.tools.doctor.directories import check_directories
from barnabas.server.tools.doctor.facts import Facts
from barnabas.server.tools.doctor.findings import Finding, Level, advice
from barnabas.server.tools.doctor.listeners import check_listeners
from barnabas.server.tools.doctor.machine import check_machine
from barnabas.storage.config.option_values import ConfigError

EXIT_USAGE: Final = 2
FORMATS: Final = ("text", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Declare the options of the command.
    """
    parser.description = (
        "Look at this machine and a configuration, and say what would be in the way of a broker"
        " and what to do about it. Nothing is changed. Exit 0 if there is no problem, 1 if there is"
        " one."
    )
    add_config_options(parser)
    parser.add_argument("--format", choices=FORMATS, default="text")


def run(options: argparse.Namespace, facts: Facts | None = None) -> int:
    """
    Check everything and print what was found.

    Returns:
        0 without a problem, 1 with one, 2 if the configuration is not acceptable.
    """
    try:
        settings = settings_from(options)
        config = settings.config()
    except ConfigError as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_USAGE
    raise_descriptor_limit()  # as a broker does
    findings = list(check(config, settings, facts or Facts()))
    if options.format == "json":
        print(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        print("\n".join(_as_text(findings)))
    return int(any(finding.level is Level.PROBLEM for finding in findings))


def check(config: BrokerConfig, settings: Settings, facts: Facts) -> Iterator[Finding]:
    """
    All findings, in the order of the checks.
    """
    yield from _check_settings(settings)
    yield from check_machine(config, facts)
    yield from check_directories(config, facts)
    yield from check_listeners(config, settings, facts)


def _check_settings(settings: Settings) -> Iterator[Finding]:
    for name, reason in settings.ignored.items():
        yield advice("options", f"{name} has no effect here: {reason}", "remove it")
    for variable in settings.unknown:
        yield advice(
            "options", f"{variable} is no option of the broker", "look for it in `barnabas options`"
        )


def _as_text(findings: Sequence[Finding]) -> Iterator[str]:
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        yield f"{finding.level:<8} {finding.subject:<{width}}  {finding.fact}"
        if finding.remedy:
            yield f"{'':<8} {'':<{width}}  -> {finding.remedy}"
    count = Counter(finding.level for finding in findings)
    problems, pieces = count[Level.PROBLEM], count[Level.ADVICE]
    yield ""
    yield f"{_counted(problems, 'problem')}, {_counted(pieces, 'piece')} of advice"


def _counted(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
