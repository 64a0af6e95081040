from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import barnabas.pipeline
from barnabas.pipeline import rows
from tests.support.compiled import ROOT

HEAVY = {"numpy", "pandas", "pyarrow", "confluent_kafka", "matplotlib"}


def ran(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout.strip()


def modules_after(program: str) -> set[str]:
    printed = ran(f"import sys; {program}; print(*{{name.split('.')[0] for name in sys.modules}})")
    return set(printed.split())


def test_package_functions_are_imported_on_first_use() -> None:
    names = (
        "archive compact from_registry open_table read_archive register replay report scan"
        " storage_options to_registry"
    )

    assert names.split() == barnabas.pipeline.__all__
    assert all(callable(getattr(barnabas.pipeline, name)) for name in barnabas.pipeline.__all__)
    assert set(barnabas.pipeline.__all__) <= set(dir(barnabas.pipeline))
    with pytest.raises(AttributeError, match="has no attribute 'archives'"):
        _ = barnabas.pipeline.archives
    assert not {*HEAVY, "pyspark"} & modules_after("import barnabas.pipeline")
    assert "pyspark" not in modules_after("from barnabas.pipeline import scan")


def test_deprecated_scan_module_still_works() -> None:
    program = """if True:
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            from barnabas.pipeline.scan import parse_options, plan, read, scan
        from barnabas.pipeline import scan as called
        for function in (scan, called):
            try:
                list(function("/nowhere", {}, columns=["offset"]))
            except FileNotFoundError as error:
                print(error)
        print(*(warning.message for warning in caught))
    """

    first, second, said = ran(program).splitlines()

    assert "There is no directory /nowhere." == first == second
    assert "from barnabas.pipeline import scan" in said
    assert rows.scan is barnabas.pipeline.scan


def test_spark_data_source_is_importable_without_the_extra() -> None:
    """
    An import error would remove all Python sources from the session; the use of the source reports
    the missing package.
    """
    assert not {*HEAVY, "barnabas"} & modules_after("import pyspark_barnabas")
    program = """if True:
        import sys
        import pyspark_barnabas
        sys.modules["pyarrow"] = None
        try:
            pyspark_barnabas.DefaultSource({})
        except ModuleNotFoundError as error:
            print(error)
    """
    said = ran(program)
    assert f"needs pyarrow, which {sys.executable} does not have: pip install 'barnabas[" in said


@pytest.mark.parametrize(
    "source", sorted((ROOT / "pipeline").rglob("*.py")), ids=lambda path: path.stem
)
def test_no_private_name_of_another_package_is_imported(source: Path) -> None:
    """
    Private names may disappear in the next version.
    """
    imports = [
        part
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("barnabas.")
        for part in ((node.module or "").split(".") + [alias.name for alias in node.names])
    ]

    assert [] == [part for part in imports if part.startswith("_") and part != "__future__"]
