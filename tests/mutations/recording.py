"""
A pytest plugin that records the lines each test executes, and how long those that pass take.

``FOLDER_VARIABLE`` names the folder of the two files, ``PREFIX_VARIABLE`` the beginning of their
names. Both files grow with each test, so that a run that ends early is of use.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import coverage
import pytest

from tests.mutations.drawing import PACKAGES, ROOT
from tests.mutations.reach import FOLDER_VARIABLE, LINES_SUFFIX, PREFIX_VARIABLE, TIMES_SUFFIX


class Recorder:
    def __init__(self, folder: Path, prefix: str) -> None:
        self._times = (folder / f"{prefix}{TIMES_SUFFIX}").open("w", buffering=1)
        self._coverage = coverage.Coverage(
            data_file=folder / f"{prefix}{LINES_SUFFIX}",
            config_file=False,
            source=[str(ROOT / package) for package in PACKAGES],
        )
        self._coverage.erase()
        self._coverage.start()
        self._phases: list[pytest.TestReport] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._coverage.switch_context(item.nodeid)
        self._phases.clear()
        result = yield
        self._coverage.switch_context("")
        # A test that is skipped cannot fail later.
        if all(phase.passed for phase in self._phases):
            seconds = sum(phase.duration for phase in self._phases)
            print(json.dumps([item.nodeid, round(seconds, 4)]), file=self._times)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._phases.append(report)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        self._times.close()


def pytest_configure(config: pytest.Config) -> None:
    recorder = Recorder(Path(os.environ[FOLDER_VARIABLE]), os.environ[PREFIX_VARIABLE])
    config.pluginmanager.register(recorder)
