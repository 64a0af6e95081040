"""
The way to write metadata, as changes use it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from barnabas.coordination.cluster.image import MetadataImage, Versioned

T = TypeVar("T")


class MetadataWriter(Protocol):
    """
    Writes the records of changes, one change after another; the server's ``Controller`` is one.
    """

    @property
    def image(self) -> MetadataImage:
        """
        The sum of the records.
        """

    async def change(self, work: Callable[[], Awaitable[T]]) -> T:
        """
        Run *work* while no other change is in progress, and return its result.
        """

    async def change_by(
        self,
        plan: Callable[[list[Versioned]], Coroutine[Any, Any, T]],
        *,
        validate_only: bool = False,
    ) -> T:
        """
        Take the steps of a plan, and write the records that it puts into its list.

        Raises:
            KafkaError: the plan raised it.
            RecordListTooLarge, KafkaStorageError: as ``write``.
        """

    async def write(self, records: Sequence[Versioned], *, atomic: bool = True) -> None:
        """
        Make *records* durable and apply them, as a part of a change.

        Raises:
            RecordListTooLarge: atomic records do not fit into one batch.
            KafkaStorageError: the metadata log cannot be written.
        """

    async def in_turns(self, steps: Coroutine[Any, Any, T]) -> T:
        """
        Take the *steps* of a plan, and let other work run between them.
        """
