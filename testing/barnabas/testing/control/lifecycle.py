"""
The broker, its clock and its log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from barnabas.server.http.json_api import Answer, Nothing, Operation
from barnabas.testing.control.control import Control
from barnabas.testing.shown import time_of


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """
    Which writes survive that are not synced; a number is the seed of a choice.
    """

    keep: Literal["nothing", "everything"] | int = "nothing"


@dataclass(frozen=True, slots=True)
class Advance:
    """
    Durations, which are added.
    """

    days: float = 0
    hours: float = 0
    minutes: float = 0
    seconds: float = 0
    milliseconds: float = 0


def describe(control: Control, _: Nothing) -> Answer:
    broker = control.broker
    return Answer(
        {
            "running": broker.is_running,
            "bootstrap_servers": broker.bootstrap_servers,
            "listeners": broker.listeners,
        }
    )


def stop(control: Control, given: Nothing) -> Answer:
    control.broker.stop()
    return describe(control, given)


def start(control: Control, given: Nothing) -> Answer:
    control.broker.start()
    return describe(control, given)


def restart(control: Control, given: Nothing) -> Answer:
    control.broker.restart()
    return describe(control, given)


def kill(control: Control, given: Nothing) -> Answer:
    control.expect_disk()
    control.broker.kill()
    return describe(control, given)


def power_loss(control: Control, given: PowerLoss) -> Answer:
    control.expect_disk()
    control.broker.power_loss(given.keep)
    return describe(control, Nothing())


def clock(control: Control, _: Nothing) -> Answer:
    now_ms = control.broker.clock.now_ms()
    return Answer({"now_ms": now_ms, "now": time_of(now_ms).isoformat()})


def advance(control: Control, given: Advance) -> Answer:
    control.broker.clock.advance(
        days=given.days,
        hours=given.hours,
        minutes=given.minutes,
        seconds=given.seconds,
        milliseconds=given.milliseconds,
    )
    return clock(control, Nothing())


def log(control: Control, _: Nothing) -> Answer:
    return Answer({"lines": control.broker.log.splitlines()})


OPERATIONS: Final = (
    Operation("GET", "/v1/broker", "whether it runs, and its addresses for clients", describe),
    Operation("POST", "/v1/broker/stop", "stops the broker as a signal does", stop),
    Operation("POST", "/v1/broker/start", "starts it, on the same ports and data", start),
    Operation("POST", "/v1/broker/restart", "stops and starts it", restart),
    Operation("POST", "/v1/broker/kill", "ends it as SIGKILL does", kill),
    Operation("POST", "/v1/broker/power-loss", "ends it and its machine", power_loss, PowerLoss),
    Operation("GET", "/v1/clock", "what time it is for the broker", clock),
    Operation("POST", "/v1/clock/advance", "moves the clock forward", advance, Advance),
    Operation("GET", "/v1/log", "the last 1000 lines of its log", log),
)
