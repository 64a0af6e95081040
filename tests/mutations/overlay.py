"""
The product with changed modules, without a change of the checkout.

The overlay is a folder with the trees of all packages: symbolic links to their files, but for the
changed modules. Its folders precede the others in ``PYTHONPATH``, which brokers that a test starts
inherit. Compiled modules are left out, for Python would take one instead of the changed source.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import cache_from_source
from pathlib import Path
from typing import Final, NamedTuple

from tests.mutations.drawing import ROOT

_PACKAGES: Final = (
    "protocol",
    "storage",
    "client",
    "coordination",
    "server",
    "pipeline",
    "testing",
)
_COMPILED: Final = (".so", ".pyd")


class Change(NamedTuple):
    """
    A fault of the product: one text in the place of another. If the text is not there any more,
    find the place where the behaviour is now.

    Attributes:
        path: the module, relative to the root of the repository.
    """

    path: str
    before: str
    after: str

    def apply(self, source: bytes) -> bytes:
        """
        Raises:
            ValueError: the module has changed.
        """
        text = source.decode()
        if self.before not in text:
            raise ValueError(f"{self.path} does not contain {self.before!r}")
        return text.replace(self.before, self.after).encode()


class Overlay:
    """
    Not safe for two runs at a time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for package in _PACKAGES:
            for place, folders, files in os.walk(ROOT / package):
                folders[:] = [name for name in folders if name != "__pycache__"]
                linked = folder / Path(place).relative_to(ROOT)
                linked.mkdir(parents=True)
                for name in files:
                    if not name.endswith(_COMPILED):
                        (linked / name).symlink_to(Path(place, name))

    @property
    def python_path(self) -> str:
        return os.pathsep.join(str(self._folder / package) for package in _PACKAGES)

    @contextmanager
    def holding(self, path: str, apply: Callable[[bytes], bytes]) -> Iterator[None]:
        """
        Have a changed module in the place of its link.

        Args:
            path: the module, relative to the root of the repository.
            apply: makes the changed source of the one that there is.
        """
        module = self._folder / path
        self._replace(module, apply(module.read_bytes()))
        try:
            yield
        finally:
            self._replace(module, None)

    @contextmanager
    def changed(self, changes: Iterable[Change]) -> Iterator[None]:
        """
        Have all *changes*.
        """
        with ExitStack() as held:
            for change in changes:
                held.enter_context(self.holding(change.path, change.apply))
            yield

    def _replace(self, module: Path, source: bytes | None) -> None:
        module.unlink()
        if source is None:
            module.symlink_to(ROOT / module.relative_to(self._folder))
        else:
            module.write_bytes(source)
        # Mutations of one second and of one size look alike to Python.
        Path(cache_from_source(str(module))).unlink(missing_ok=True)
