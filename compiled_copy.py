"""
Keeps a compiled copy of the packages in ``build/compiled``, apart from the sources.

    python compiled_copy.py build                  # compile, unless the copy is current
    python compiled_copy.py run COMMAND ...        # run COMMAND, on the copy if it is current
    python compiled_copy.py require COMMAND ...    # run COMMAND on the copy, or fail

A checkout runs its sources as plain Python, so an edit takes effect at once. Compiling takes
minutes and pays off where speed matters: ``make run``, benchmarks and CI. The copy contains the
sources that it was compiled from. It is current while these equal the sources of the checkout byte
by byte, so modules compiled from other sources are never imported.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent
COPY: Final = ROOT / "build" / "compiled"
FOLDERS: Final = ("protocol", "storage", "client", "coordination", "server", "pipeline", "testing")
INPUTS: Final = ("pyproject.toml", "hatch_build.py")
"""Files beside the sources that decide how these are compiled."""
PYTHON: Final = ".python"
"""A file of the copy that names the Python and the optimization level it was compiled for."""


def main() -> int:
    """
    Run the command line and return its exit status.
    """
    match sys.argv[1:]:
        case ["build"]:
            return build()
        case ["run" | "require" as verb, *command] if command:
            if is_current():
                os.environ["PYTHONPATH"] = os.pathsep.join(
                    [str(COPY), *filter(None, [os.environ.get("PYTHONPATH")])]
                )
            elif verb == "require":
                print("There is no compiled copy of these sources: make compile", file=sys.stderr)
                return 1
            os.execvp(command[0], command)
    print((__doc__ or "").strip(), file=sys.stderr)
    return 2


def build() -> int:
    """
    Replace the copy unless it is current.
    """
    if is_current():
        print(f"The compiled copy in {COPY.relative_to(ROOT)} is current")
        return 0
    print("Compiling the inner loops: 3 to 5 minutes on two cores (make run works without)")
    started = time.monotonic()  # noqa: TID251  # real time, for people
    shutil.rmtree(COPY, ignore_errors=True)
    # Sources that change while they are compiled must not make the copy look current.
    before = sources()
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    done = subprocess.run(
        [*install, "--target", str(COPY), str(ROOT)],
        env=os.environ | {"BARNABAS_COMPILE": "1"},
        check=False,
    )
    if done.returncode or before != sources():
        shutil.rmtree(COPY, ignore_errors=True)
        print("Compiling failed" if done.returncode else "The sources changed meanwhile; try again")
        return 1
    for unneeded in (COPY / "bin", *COPY.glob("*.dist-info")):
        shutil.rmtree(unneeded, ignore_errors=True)
    for name in INPUTS:
        shutil.copy(ROOT / name, COPY)
    (COPY / PYTHON).write_text(_environment())
    seconds = time.monotonic() - started  # noqa: TID251  # real time, for people
    print(f"Compiled in {seconds:.0f} s")
    return 0


def is_current() -> bool:
    """
    Return True if the copy is complete and was compiled from the sources of the checkout.
    """
    try:
        if (COPY / PYTHON).read_text() != _environment():
            return False
    except OSError:
        return False
    inputs = all((COPY / each).read_bytes() == (ROOT / each).read_bytes() for each in INPUTS)
    return inputs and sources() == sources_in(COPY)


def sources() -> dict[str, bytes]:
    """
    The contents of all files of the packages in the checkout, by their paths in a wheel.
    """
    return {name: data for each in FOLDERS for name, data in sources_in(ROOT / each).items()}


def sources_in(folder: Path) -> dict[str, bytes]:
    """
    The contents of the files of ``barnabas`` and ``pyspark_barnabas`` below *folder*, by path.
    """
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for package in ("barnabas", "pyspark_barnabas")
        for path in (folder / package).rglob("*")
        if path.is_file() and path.suffix not in {".so", ".pyd", ".pyc"}
    }


def _environment() -> str:
    return f"{sys.version}\n{os.environ.get('BARNABAS_OPTIMIZATION', '3')}\n"


if __name__ == "__main__":
    raise SystemExit(main())
