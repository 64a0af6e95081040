"""
The options of commands that need the configuration of a broker.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from barnabas.server.config.sources import Settings, load_settings
from barnabas.storage.config.paths import local_path

if TYPE_CHECKING:
    import argparse


def add_config_options(
    parser: argparse.ArgumentParser,
    place: argparse._ActionsContainer | None = None,
    config_help: str = "as for serve",
) -> None:
    """
    Declare ``--config``, ``--set`` and ``--data-dir``.

    Args:
        place: the group that ``--data-dir`` is in, if it excludes other options.
    """
    parser.add_argument("--config", type=local_path, metavar="FILE", help=config_help)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="assignments",
        metavar="NAME=VALUE",
        help="one option; may be repeated",
    )
    (place or parser).add_argument(
        "--data-dir", type=local_path, metavar="DIR", help="the log directory"
    )


def settings_from(options: argparse.Namespace) -> Settings:
    """
    The settings of the broker that these options and the environment describe.

    Raises:
        ConfigError: a name or a value is not acceptable.
    """
    assignments = list(options.assignments)
    if options.data_dir is not None:
        assignments.append(f"log.dirs={options.data_dir}")
    return load_settings(file=options.config, environment=os.environ, assignments=assignments)
