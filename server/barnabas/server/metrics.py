"""
Counters and gauges of a running broker.

A counter is an object with a number that its owner adds to: one attribute, no lock, no look-up for
a request. A gauge is a function that is called when the metrics are read. The reader chooses the
format.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Iterator

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.structs import NamedTuple


class Counter:
    """
    A number that only grows. Add to ``value``.
    """

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class Sample(NamedTuple):
    """
    The current value of one counter or gauge.
    """

    name: str
    kind: str  # "counter" or "gauge"
    help: str
    labels: tuple[tuple[str, str], ...]
    value: float


class _Family:
    __slots__ = ("help", "kind", "members")

    def __init__(self, kind: str, help_text: str) -> None:
        self.kind = kind
        self.help = help_text
        self.members: dict[tuple[tuple[str, str], ...], Counter | Callable[[], float]] = {}


class Metrics:
    """
    All counters and gauges, by name and labels.
    """

    def __init__(self) -> None:
        self._families: dict[str, _Family] = {}
        self._errors: dict[tuple[str, ErrorCode], Counter] = {}

    def counter(self, name: str, help_text: str, **labels: str) -> Counter:
        """
        The counter with that name and these labels. The caller keeps it.
        """
        members = self._family("counter", name, help_text).members
        counter = members.setdefault(tuple(labels.items()), Counter())
        assert isinstance(counter, Counter)
        return counter

    def count_error(self, api: str, code: ErrorCode) -> None:
        """
        Count an item of a request to *api* that is answered with *code*.
        """
        counter = self._errors.get((api, code))
        if counter is None:
            counter = self._errors[api, code] = self.counter(
                "errors", "Errors in responses.", api=api, code=code.name
            )
        counter.value += 1

    def count_refusal(self, resource_type: str, operation: str) -> None:
        """
        Count something that a client was not allowed to do.
        """
        self.counter(
            "authorizations_denied",
            "What clients were not allowed to do.",
            resource=resource_type,
            operation=operation,
        ).value += 1

    def count_throttled(self, name: str, quota: str, throttle_ms: int) -> None:
        """
        Count under *name* something that has to wait, by a kind of quotas.
        """
        self.counter(name, "What came over a quota and had to wait.", quota=quota).value += 1
        self.counter(
            "throttle_time_ms", "How long clients over a quota had to wait.", quota=quota
        ).value += throttle_ms

    def gauge(self, name: str, help_text: str, read: Callable[[], float], **labels: str) -> None:
        """
        Set the function of a gauge, in place of an earlier one with the same labels.
        """
        self._family("gauge", name, help_text).members[tuple(labels.items())] = read

    def __iter__(self) -> Iterator[Sample]:
        """
        The current values, family by family.
        """
        for name, family in self._families.items():
            for labels, member in family.members.items():
                value = member.value if isinstance(member, Counter) else member()
                yield Sample(name, family.kind, family.help, labels, value)

    def counters(self, name: str) -> list[tuple[tuple[tuple[str, str], ...], Counter]]:
        """
        The counters with that name and their labels.
        """
        family = self._families.get(name)
        found = [] if family is None else list(family.members.items())
        return [(labels, each) for labels, each in found if isinstance(each, Counter)]

    def value(self, name: str, **labels: str) -> float:
        """
        The sum of all samples with that name and at least these labels.
        """
        wanted = set(labels.items())
        return sum(
            sample.value for sample in self if sample.name == name and wanted <= set(sample.labels)
        )

    def _family(self, kind: str, name: str, help_text: str) -> _Family:
        family = self._families.setdefault(name, _Family(kind, help_text))
        assert family.kind == kind, f"{name} is a {family.kind}"
        return family
