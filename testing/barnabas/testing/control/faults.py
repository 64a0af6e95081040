"""
Faults that requests meet, and chaos.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from barnabas.server.http.guard import Refused
from barnabas.server.http.json_api import CREATED, DONE, Answer, Nothing, Operation
from barnabas.testing.control.control import Control, NumberedFault
from barnabas.testing.faults import Chaos, Fault

MOST_FAULTS: Final = 1000


@dataclass(frozen=True, slots=True)
class NewFault:
    """
    What happens to which requests.
    """

    kind: Literal["fail", "delay", "drop", "close", "hang", "throttle"]
    api: str
    error: str | None = None
    seconds: float | None = None
    times: int | None = None
    client_id: str | None = None
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class NewChaos:
    """
    How chance fails requests.
    """

    seed: int
    one_in: int = 10


def _check(given: NewFault) -> None:
    for name, value, kinds in (
        ("error", given.error, ("fail",)),
        ("seconds", given.seconds, ("delay", "throttle")),
    ):
        if (value is not None) != (given.kind in kinds):
            has = "needs the field" if value is None else "has no field"
            raise Refused(400, f"a fault of the kind {given.kind} {has} {name}")
    if given.seconds is not None and given.seconds < 0:
        raise Refused(400, f"seconds is at least 0, not {given.seconds}")
    if given.times is not None and given.times < 1:
        raise Refused(400, f"times is at least 1, not {given.times}")


def _order(control: Control, given: NewFault) -> Fault:
    faults = control.broker.faults
    chosen: dict[str, Any] = {
        "times": given.times,
        "client_id": given.client_id,
        "topic": given.topic,
    }
    if given.error is not None:
        chosen["error"] = given.error
    if given.seconds is not None:
        chosen["seconds"] = given.seconds
    order: Fault = getattr(faults, given.kind)(given.api, **chosen)
    return order


def add(control: Control, given: NewFault) -> Answer:
    _check(given)
    if len(control.faults) >= MOST_FAULTS:
        raise Refused(
            409, f"there are {MOST_FAULTS} faults: DELETE /v1/faults/ID or /v1/faults removes some"
        )
    fault = _order(control, given)
    control.faults_so_far += 1
    fields = {name: value for name, value in asdict(given).items() if value is not None}
    control.faults[control.faults_so_far] = NumberedFault(fields, fault)
    return Answer(_view(control, control.faults_so_far), CREATED)


def _view(control: Control, number: int) -> dict[str, Any]:
    numbered = control.faults[number]
    return {"id": number, **numbered.fields, "count": numbered.fault.count}


def _expect(control: Control, text: str) -> int:
    number = int(text) if text.isdecimal() and len(text) < 10 else 0
    if number not in control.faults:
        raise Refused(404, f"there is no fault {text}: GET /v1/faults lists all")
    return number


def list_faults(control: Control, _: Nothing) -> Answer:
    return Answer({"faults": [_view(control, number) for number in control.faults]})


def show(control: Control, _: Nothing, *, number: str) -> Answer:
    return Answer(_view(control, _expect(control, number)))


def remove(control: Control, _: Nothing, *, number: str) -> Answer:
    control.faults.pop(_expect(control, number)).fault.remove()
    return DONE


def clear(control: Control, _: Nothing) -> Answer:
    control.broker.faults.clear()
    control.faults.clear()
    return DONE


# Chaos


def begin_chaos(control: Control, given: NewChaos) -> Answer:
    control.chaos = control.broker.chaos(given.seed, one_in=given.one_in)
    return Answer(_schedule(control.chaos), CREATED)


def show_chaos(control: Control, _: Nothing) -> Answer:
    return Answer(_schedule(_expect_chaos(control)))


def end_chaos(control: Control, _: Nothing) -> Answer:
    chaos = _expect_chaos(control)
    chaos.stop()
    control.chaos = None
    return Answer(_schedule(chaos))


def _expect_chaos(control: Control) -> Chaos:
    if control.chaos is None:
        raise Refused(404, "there is no chaos: POST /v1/chaos begins it")
    return control.chaos


def _schedule(chaos: Chaos) -> dict[str, Any]:
    return {"seed": chaos.seed, "schedule": chaos.schedule}


OPERATIONS: Final = (
    Operation("POST", "/v1/faults", "orders a fault, and gives it an id", add, NewFault),
    Operation("GET", "/v1/faults", "all faults", list_faults),
    Operation("GET", "/v1/faults/{number}", "a fault: its count of requests", show),
    Operation("DELETE", "/v1/faults/{number}", "removes a fault", remove),
    Operation("DELETE", "/v1/faults", "removes all faults", clear),
    Operation("POST", "/v1/chaos", "lets chance fail requests", begin_chaos, NewChaos),
    Operation("GET", "/v1/chaos", "what chance has done", show_chaos),
    Operation("DELETE", "/v1/chaos", "ends that, and says what it has done", end_chaos),
)
