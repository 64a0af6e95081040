"""
The README keeps its word.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.broker_process import BrokerProcess

README = Path(__file__).parent.parent.parent / "README.md"


def test_the_example_prints_what_it_sent(broker: BrokerProcess) -> None:
    """
    The lines of Python run as they stand, but for the port.
    """
    [example] = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
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
