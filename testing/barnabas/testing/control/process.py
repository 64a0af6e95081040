"""
``barnabas serve --test-control``: a broker and its control, as a process.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, NamedTuple

from barnabas.server.config import Settings
from barnabas.server.http.address import Address
from barnabas.server.http.guard import Guard
from barnabas.server.http.json_api import make_app
from barnabas.server.http.server import HttpServer
from barnabas.server.network.acceptor import CannotListen
from barnabas.server.process import prepare, stop_on_signals
from barnabas.storage.config.option_values import ConfigError
from barnabas.storage.readonly.command_line import EXIT_DONE, EXIT_FAILED, EXIT_USAGE
from barnabas.testing.broker import Broker
from barnabas.testing.control.api import OPERATIONS
from barnabas.testing.control.control import Control, refusal
from barnabas.testing.disks.faulty import FaultyFiles
from barnabas.testing.errors import BrokerError

logger = logging.getLogger(__name__)


class Options(NamedTuple):
    """
    What ``barnabas serve`` is given for the control.
    """

    address: Address
    hosts: Sequence[str] = ()
    """Further names of the host under which clients ask."""
    clock: Literal["running", "still"] = "running"
    ephemeral: bool = False
    """The files are in memory, wherever the settings have them."""


def run(settings: Settings, options: Options) -> int:
    """
    Run a broker in a thread, and its control, until a signal stops both.

    Returns:
        0 after a signal, 1 if either could not start, 2 if an option is not acceptable.
    """
    prepare(settings)
    gc.enable()  # the command has disabled it for a start without a control
    try:
        asyncio.run(_serve(_control(settings, options), options))
    except (CannotListen, BrokerError) as error:
        logger.error("the broker ends: %s", error)
        return EXIT_USAGE if isinstance(error.__cause__, ConfigError) else EXIT_FAILED
    except Exception:
        logger.exception("the broker ends")
        return EXIT_FAILED
    return EXIT_DONE


def _control(settings: Settings, options: Options) -> Control:
    """
    The control of a broker with these settings, the defaults of a test where they say nothing, and
    the listeners of ``barnabas serve``. Its files are in memory unless they name a directory.
    """
    config = {name: text for name, text in settings.texts.items() if text is not None}
    directories = settings.config().log_directories
    is_placed = not options.ephemeral and ("log.dirs" in config or "log.dir" in config)
    if not is_placed:
        for name in ("log.dirs", "log.dir", "metadata.log.dir"):
            config.pop(name, None)
    config.setdefault("listeners", ",".join(settings.config().listeners))
    disk = None if is_placed else FaultyFiles()
    broker = Broker(
        Path(directories[0]) if is_placed else None,
        disk=disk,
        config=config | ({"log.dirs": ",".join(map(str, directories))} if is_placed else {}),
        clock=options.clock,
    )
    return Control(broker, disk)


async def _serve(control: Control, options: Options) -> None:
    stop = stop_on_signals()
    # One thread: operations take turns, as the statements of a test do.
    with ThreadPoolExecutor(1, "barnabas-control") as executor:
        app = make_app(OPERATIONS, control, executor=executor, refusal=refusal)
        guard = Guard(app, [options.address.host, *options.hosts])
        server = HttpServer(guard, options.address, option="--test-control")
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(executor, control.broker.start)
            await server.start()
            logger.info("test control on http://%s", server.address)
            # For the program that has started this one.
            print(f"http://{server.address}", flush=True)
            await stop.wait()
        finally:
            await server.stop()
            await loop.run_in_executor(executor, control.broker.stop)
