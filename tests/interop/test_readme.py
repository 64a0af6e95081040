"""
The README keeps its word.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.broker_process import BrokerProcess
from tests.support.examples import run_example

README = Path(__file__).parent.parent.parent / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_readme_example_prints_what_it_sent(broker: BrokerProcess) -> None:
    """
    The lines of Python run as they stand, but for the port.
    """
    _, example = EXAMPLES
    program = example.replace("localhost:9092", broker.bootstrap)

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    expected = [f"0 {n} b'to the castle' b'message {n}'" for n in range(10)]
    assert expected == done.stdout.splitlines(), done.stderr[-2000:]


def test_readme_test_example_passes(tmp_path: Path) -> None:
    """
    It is a whole file: the fixture comes with the package.
    """
    example, _ = EXAMPLES

    run_example(example, tmp_path)
