"""
Lets a ``Watch`` follow each broker of this process.
"""

from __future__ import annotations

from typing import Any

ATTRIBUTE = "_watch_of_tests"


def attach(broker_class: Any) -> None:
    """
    Wrap the methods of the class by which a broker starts and stops.
    """
    if hasattr(broker_class, ATTRIBUTE):
        return  # A process beside others that run tests is watched as one that a test has started.
    setattr(broker_class, ATTRIBUTE, None)
    start, close_logs, stop = broker_class.start, broker_class._close_logs, broker_class._stop

    async def watched_start(broker: Any) -> None:
        # Imported here: a process that only looks at the module of the broker pays nothing.
        from tests.support.checkers.watch import Watch  # noqa: PLC0415  # see above

        watch = Watch(broker)
        vars(broker)[ATTRIBUTE] = watch
        make_dispatcher = broker.dispatcher

        def dispatcher(parts: Any) -> Any:
            made = make_dispatcher(parts)
            if hasattr(made, "_handlers"):
                made._handlers = watch.watched(made._handlers)
            return made

        vars(broker)["dispatcher"] = dispatcher
        await start(broker)
        watch.started()

    async def watched_close_logs(broker: Any, log_manager: Any) -> None:
        await close_logs(broker, log_manager)
        watch = vars(broker).get(ATTRIBUTE)
        if watch is not None:
            watch.closed()

    async def watched_stop(broker: Any) -> None:
        watch = vars(broker).get(ATTRIBUTE)
        if watch is not None:
            watch.stopping()
        await stop(broker)
        if watch is not None:
            watch.stopped()
            del vars(broker)[ATTRIBUTE], vars(broker)["dispatcher"]

    broker_class.start = watched_start
    broker_class._close_logs = watched_close_logs
    broker_class._stop = watched_stop
