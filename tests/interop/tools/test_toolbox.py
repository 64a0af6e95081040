"""
The machine in which the tools are kept warm.
"""

from __future__ import annotations

import pytest

from tests.interop.tools.toolbox import Toolbox
from tests.support.apache_kafka import class_path

pytestmark = pytest.mark.prove

RUNS = 200


def test_log_line_belongs_to_the_run_that_logged_it() -> None:
    """
    Runs that log at the same time each print what they logged, once.
    """
    class_path()
    toolbox = Toolbox()
    try:
        # It logs that it is deprecated, and ends.
        runs = [toolbox.start("kafka-replica-verification", "--version") for _ in range(RUNS)]

        lines = [len(run.wait().err.splitlines()) for run in runs]
    finally:
        toolbox.close()

    assert lines == [1] * RUNS
