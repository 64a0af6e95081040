"""
The health of a broker, and its readiness for clients.

``/healthz`` fails when a restart may help: all log directories have failed, or the event loop
stands still, and then nothing answers. ``/readyz`` fails while clients are not served, and says
what is waited for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.server.http.observed import ObservedBroker

OK = 200
UNAVAILABLE = 503


class HealthAnswer(NamedTuple):
    """
    A status of HTTP, and the reasons.
    """

    status: int
    content: dict[str, object]


def health(broker: ObservedBroker) -> HealthAnswer:
    """
    Whether the broker can go on as it is.
    """
    logs = broker.log_manager
    if logs is not None and not logs.directories.live:
        names = [str(path) for path in logs.directories.offline]
        return HealthAnswer(
            UNAVAILABLE,
            {"status": "failed", "reason": "all log directories are offline", "offline": names},
        )
    return HealthAnswer(OK, {"status": "ok"})


def readiness(broker: ObservedBroker) -> HealthAnswer:
    """
    Whether clients are served. Coordinators that load do not count: clients wait for them, and can
    write and read meanwhile.
    """
    found = broker.readiness
    said: dict[str, object] = {
        "status": "ready" if found.is_ready else "waiting",
        "state": found.state.name,
        "seconds": round(found.seconds, 3),
    }
    if not found.is_ready:
        said["reason"] = f"the broker waits for {found.waits_for}"
        said |= _logs_left(broker)
        return HealthAnswer(UNAVAILABLE, said)
    assert broker.parts is not None, "clients are served"
    said["coordinators_loading"] = broker.parts.coordinators.loading
    return HealthAnswer(OK, said)


def _logs_left(broker: ObservedBroker) -> dict[str, object]:
    """
    The logs that are loaded and that are left, and the seconds that the rest takes at this pace.
    """
    progress = None if broker.log_manager is None else broker.log_manager.load_progress
    if progress is None:
        return {}
    logs: dict[str, object] = {"logs_done": progress.done, "logs_left": progress.left}
    if progress.done:
        left_s = broker.readiness.seconds * progress.left / progress.done
        logs["seconds_left"] = round(left_s, 1)
    return logs
