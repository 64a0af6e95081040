"""
Mutations of small modules.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutations.mutation import Mutation, find_mutations

FUNCTION = """
def function(a: int, b: int) -> {returns}:
    {statement}
"""


def mutations_of(source: str, folder: Path) -> list[Mutation]:
    (folder / "module.py").write_text(source)
    return find_mutations("module.py", folder)


def faults_of(source: str, folder: Path) -> set[str]:
    """
    Mutate *source* in all ways.
    """
    return {mutation.apply(source.encode()).decode() for mutation in mutations_of(source, folder)}


@pytest.mark.parametrize(
    ("statement", "faults"),
    [
        ("x = a < b", {"x = (a <= b)", "x = (a >= b)"}),
        ("x = a == b", {"x = (a != b)"}),
        ("x = a is b", {"x = (a is not b)"}),
        ("x = not a", {"x = (a)"}),
        ("x = a and b", {"x = (a or b)", "x = (b)", "x = (a)"}),
        ("x = a + b", {"x = (a - b)"}),
        ("x += a", {"x -= a"}),
        ("x = 7", {"x = 8", "x = 6"}),
        ("x = 0", {"x = 1", "x = (-1)"}),
        ("x = True", {"x = False"}),
        ("x = min(a, b)", {"x = max(a, b)"}),
        ("f(a, b)", {"pass", "(f(b, a))"}),
        ("a.x = b", {"pass"}),
        ("raise a", {"pass"}),
        ("x = a if b else a", {"x = a if (not (b)) else a"}),
    ],
)
def test_a_statement_has_the_faults_of_its_parts(
    statement: str, faults: set[str], tmp_path: Path
) -> None:
    source = FUNCTION.format(returns="None", statement=statement)

    found = faults_of(source, tmp_path)

    assert {FUNCTION.format(returns="None", statement=fault) for fault in faults} == found


@pytest.mark.parametrize(
    ("returns", "fault"),
    [
        ("int", "return 0"),
        ("bool", "return (not (a))"),
        ("list[int]", "return []"),
        ("Thing | None", "return None"),
    ],
)
def test_a_function_returns_the_default_of_its_type(
    returns: str, fault: str, tmp_path: Path
) -> None:
    source = FUNCTION.format(returns=returns, statement="return a")

    assert {FUNCTION.format(returns=returns, statement=fault)} == faults_of(source, tmp_path)


def test_a_loop_ends_early_or_goes_on(tmp_path: Path) -> None:
    source = "for x in y:\n    break\n"

    assert {"for x in y:\n    continue\n"} == faults_of(source, tmp_path)


def test_an_exception_is_no_longer_handled(tmp_path: Path) -> None:
    source = "try:\n    x = y\nexcept OSError:\n    x = z\n"

    assert {"try:\n    x = y\nexcept OSError:\n    raise\n"} == faults_of(source, tmp_path)


@pytest.mark.parametrize(
    "source",
    [
        '"""Text with 1 < 2."""\n',
        "x: Literal[1]\n",
        "if TYPE_CHECKING:\n    x = 1\n",
        "logger.info(text, 1)\n",
        "assert x < 1, 2\n",
        "@cache(maxsize=1)\ndef f() -> None: ...\n",
        "def __repr__(self) -> str:\n    return x\n",
        "def f(x: Literal[1]) -> Literal[2]: ...\n",
    ],
)
def test_code_without_effect_has_no_faults(source: str, tmp_path: Path) -> None:
    assert [] == mutations_of(source, tmp_path)


def test_names_of_mutations_are_unique_and_do_not_depend_on_lines(tmp_path: Path) -> None:
    source = "class C:\n    def m(self) -> None:\n        x = 1\n        x = 1\n"

    names = [mutation.name for mutation in mutations_of(source, tmp_path)]

    assert len(set(names)) == len(names) == 4
    assert names == [mutation.name for mutation in mutations_of(f"\n\n{source}", tmp_path)]
    assert "module.py::C.m::constant::1 -> 2" == names[0]
