"""
A pytest plugin that runs chosen tests in a given order, and writes the first failure to a file.

``VARIABLE`` names a JSON file with the tests. The failure is written beside it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

import pytest

VARIABLE: Final = "BARNABAS_MUTATIONS_TESTS"
FAILURE: Final = "failure.json"


class Selection:
    def __init__(self, file: Path) -> None:
        tests: list[str] = json.loads(file.read_text())
        self._places = {test: place for place, test in enumerate(tests)}
        self._failure = file.with_name(FAILURE)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid not in self._places])
        items[:] = [item for item in items if item.nodeid in self._places]
        items.sort(key=lambda item: self._places[item.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(report.nodeid, report.longreprtext)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._write(report.nodeid, report.longreprtext)

    def _write(self, test: str, text: str) -> None:
        if not self._failure.exists():
            self._failure.write_text(json.dumps({"test": test, "text": text}))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Selection(Path(os.environ[VARIABLE])))
