"""
A broker inside a test.

::

    with Broker() as broker:
        broker.topic("orders").create(partitions=3).append(["one", "two"])

The names of this package are loaded when they are first used: a test suite that does not use a
broker does not load one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker as Broker
    from barnabas.testing.clock import Clock as Clock
    from barnabas.testing.errors import AppendRefused as AppendRefused
    from barnabas.testing.errors import BrokerDied as BrokerDied
    from barnabas.testing.errors import BrokerError as BrokerError
    from barnabas.testing.errors import InvalidConfig as InvalidConfig
    from barnabas.testing.errors import InvalidFault as InvalidFault
    from barnabas.testing.errors import InvalidTopic as InvalidTopic
    from barnabas.testing.errors import NotRunning as NotRunning
    from barnabas.testing.errors import StartFailed as StartFailed
    from barnabas.testing.errors import TopicExists as TopicExists
    from barnabas.testing.errors import UnknownTopic as UnknownTopic
    from barnabas.testing.errors import WaitTimeout as WaitTimeout
    from barnabas.testing.faults import Chaos as Chaos
    from barnabas.testing.faults import Fault as Fault
    from barnabas.testing.faults import Faults as Faults
    from barnabas.testing.manual_clock import ManualClock as ManualClock
    from barnabas.testing.records import NewRecord as NewRecord
    from barnabas.testing.records import Record as Record
    from barnabas.testing.topic import Topic as Topic
    from barnabas.testing.views import Group as Group
    from barnabas.testing.views import Member as Member
    from barnabas.testing.views import Segment as Segment

_MODULES = {
    "broker": ["Broker"],
    "clock": ["Clock"],
    "errors": [
        "AppendRefused",
        "BrokerDied",
        "BrokerError",
        "InvalidConfig",
        "InvalidFault",
        "InvalidTopic",
        "NotRunning",
        "StartFailed",
        "TopicExists",
        "UnknownTopic",
        "WaitTimeout",
    ],
    "faults": ["Chaos", "Fault", "Faults"],
    "manual_clock": ["ManualClock"],
    "records": ["NewRecord", "Record"],
    "topic": ["Topic"],
    "views": ["Group", "Member", "Segment"],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605  # a list of the same names


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return __all__
