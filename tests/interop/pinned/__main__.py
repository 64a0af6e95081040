"""
Makes the archive of a directory as this version writes it::

    python -m tests.interop.pinned

Once for each release: later versions have to open what earlier ones wrote.
"""

from __future__ import annotations

import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

from tests.interop.pinned.directory import ARCHIVES, SETTINGS, fill
from tests.support.broker_process import Barnabas


def main() -> None:
    path = ARCHIVES / f"barnabas-{version('barnabas')}.tar.xz"
    with tempfile.TemporaryDirectory() as name:
        with Barnabas(Path(name), settings=SETTINGS) as broker:
            fill(broker.bootstrap)
            broker.stop()
        with tarfile.open(path, "w:xz") as archive:
            archive.add(broker.data, "data")
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
