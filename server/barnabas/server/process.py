"""
Running a broker as a process: the event loop, signals, the exit status.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Coroutine
from typing import Any

from barnabas.protocol.errors import KafkaError
from barnabas.server.broker import Broker
from barnabas.server.config import BrokerConfig, Settings
from barnabas.server.network.acceptor import CannotListen
from barnabas.server.resources.collector import Collector

logger = logging.getLogger(__name__)

SETTLED_S = 1.0
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(config: BrokerConfig, settings: Settings, *, ephemeral: bool = False) -> int:
    """
    Run a broker until it is told to stop.

    Args:
        settings: what the configuration was made of; what it leaves aside is told.

    Returns:
        0 if it was told to stop, 1 if it could not start or not go on.
    """
    for name, reason in settings.ignored.items():
        logger.warning("%s has no effect here: %s", name, reason)
    for variable in settings.unknown:
        logger.warning("%s is no option of the broker", variable)
    _allow_many_files()
    try:
        _run(_serve(Broker(config, ephemeral=ephemeral)))
    except (CannotListen, KafkaError) as error:
        logger.error("the broker ends: %s", error)
        return 1
    except Exception:
        logger.exception("the broker ends")
        return 1
    return 0


def _run(serving: Coroutine[Any, Any, None]) -> None:
    """
    Run on uvloop, which is quicker, or on the loop of Python where there is none.
    """
    try:
        from uvloop import run  # noqa: PLC0415  # not every system has it
    except ImportError:
        logger.info("uvloop is not installed: the event loop is Python's own, and slower")
        asyncio.run(serving)
    else:
        run(serving)


def _allow_many_files() -> None:
    """
    Let the process open as many files as the system allows it to.

    A partition that is written to holds three to five, and the usual limit is 1024.
    """
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415  # not every system has it

    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == most:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (OSError, ValueError) as error:
        logger.warning("only %d files can be open at a time: %s", limit, error)


async def _serve(broker: Broker) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def asked(number: signal.Signals) -> None:
        logger.info("%s: stopping; a second one ends the process at once", number.name)
        stop.set()
        for other in SIGNALS:
            loop.remove_signal_handler(other)

    for number in SIGNALS:
        loop.add_signal_handler(number, asked, number)
    collector = Collector(loop, lambda: broker.turns.activity())  # noqa: PLW0108  # it changes
    broker.turns.on_busy = collector.be_busy
    broker.turns.on_pause = collector.pause
    # Not at once: clients may be waiting, and it takes some milliseconds.
    await broker.run(stop, ready=lambda: loop.call_later(SETTLED_S, collector.start))
