"""
A broker as a process: its event loop, its signals, its exit status.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from barnabas.protocol.errors import KafkaError
from barnabas.server.broker import Broker
from barnabas.server.config import BrokerConfig, Settings
from barnabas.server.network.acceptor import CannotListen
from barnabas.server.resources.collector import Collector
from barnabas.server.resources.descriptors import raise_descriptor_limit
from barnabas.storage.config.option_values import ConfigError
from barnabas.storage.errors import InvalidLogDirectory
from barnabas.storage.readonly.command_line import EXIT_DONE, EXIT_FAILED, EXIT_USAGE

logger = logging.getLogger(__name__)

SETTLED_S = 1.0
"""
The time from the start to the first collection of cycles, which takes some milliseconds: the first
clients need not wait for it.
"""
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(config: BrokerConfig, settings: Settings, *, ephemeral: bool = False) -> int:
    """
    Run a broker until a signal stops it.

    Args:
        settings: the sources of the configuration; its ignored and unknown options are logged.

    Returns:
        0 after a signal, 1 if the broker could not start or has failed, 2 if it could not start
        with these options.
    """
    prepare(settings)
    said: list[Exception] = []

    def say(error: Exception) -> None:
        if error in said:
            return
        said.append(error)
        if isinstance(error, (CannotListen, ConfigError, KafkaError)):
            sentence = settings.without_values(str(error)).replace("\n", " ")
            if isinstance(error, InvalidLogDirectory):
                sentence += " Is this the right directory (log.dirs, --data-dir)?"
            logger.error("the broker ends: %s", sentence)
        else:
            logger.error("the broker ends", exc_info=error)

    try:
        _run(_serve(Broker(config, ephemeral=ephemeral), say))
    except ConfigError as error:
        say(error)
        return EXIT_USAGE
    except Exception as error:
        say(error)
        return EXIT_FAILED
    return EXIT_DONE


def prepare(settings: Settings) -> None:
    """
    Log the ignored and the unknown options, and take all the descriptors that the system gives.
    """
    for name, reason in settings.ignored.items():
        logger.warning("%s has no effect here: %s", name, reason)
    for variable in settings.unknown:
        logger.warning("%s is no option of the broker", variable)
    raise_descriptor_limit()


def _run(serving: Coroutine[Any, Any, None]) -> None:
    """
    Run on uvloop, or on Python's event loop where uvloop is not installed.
    """
    try:
        from uvloop import run  # noqa: PLC0415  # not every system has it
    except ImportError:
        logger.info("uvloop is not installed: Python's event loop is used, which is slower")
        asyncio.run(serving)
    else:
        run(serving)


def stop_on_signals() -> asyncio.Event:
    """
    An event that the first signal sets; a second one ends the process.
    """
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def asked(number: signal.Signals) -> None:
        logger.info("%s: stopping; a second one ends the process at once", number.name)
        stop.set()
        for other in SIGNALS:
            loop.remove_signal_handler(other)

    for number in SIGNALS:
        loop.add_signal_handler(number, asked, number)
    return stop


async def _serve(broker: Broker, failed: Callable[[Exception], object]) -> None:
    stop = stop_on_signals()
    loop = asyncio.get_running_loop()
    collector = Collector(loop, lambda: broker.turns.served, lambda: broker.request_bytes)
    broker.turns.on_busy = collector.be_busy
    broker.turns.on_pause = collector.pause
    broker.on_let_go = collector.empty_free_lists
    await broker.run(stop, ready=lambda: loop.call_later(SETTLED_S, collector.start), failed=failed)
