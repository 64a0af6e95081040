"""
The README keeps its word.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.interop.page_reader import Reader, blocks_of
from tests.support.broker_process import BrokerProcess
from tests.support.commands import run
from tests.support.examples import run_example

README = Path(__file__).parent.parent.parent / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_readme_example_prints_what_it_sent(broker: BrokerProcess) -> None:
    """
    The lines of Python run as they stand, but for the port, once and once more.
    """
    example, _ = EXAMPLES
    program = example.replace("localhost:9092", broker.bootstrap)

    for first in (0, 10):
        done = run(sys.executable, "-W", "ignore", "-c", program)
        expected = [f"0 {first + n} b'to the castle' b'message {n}'" for n in range(10)]
        assert expected == done.stdout.splitlines(), done.stderr[-2000:]


def test_readme_test_example_passes(tmp_path: Path) -> None:
    """
    It is a whole file: the fixture comes with the package.
    """
    _, example = EXAMPLES

    run_example(example, tmp_path)


def test_readme_commands_work_as_printed(tmp_path: Path) -> None:
    """
    All but those that install or need Docker, which other tests run.
    """
    reader = Reader(tmp_path)
    blocks = [block for language, block in blocks_of("README.md") if language == "sh"]
    try:
        for block in blocks:
            if "docker" not in block:
                reader.follow("sh", block)
        assert reader.run("barnabas consume castles --values") == ["three castles"]
    finally:
        reader.end()
