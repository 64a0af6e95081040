"""
Compiles the modules that the records go through, when a wheel is built and asked to.

``BARNABAS_COMPILE`` decides: nothing or ``0`` gives a wheel of plain Python for every system, ``1``
a wheel for this one or an error, ``auto`` the one or the other, by whether there are a C compiler
and Python's headers. ``BARNABAS_OPTIMIZATION`` is how much the C compiler optimizes: 3, or less of
it, which is sooner done.

A module is compiled if it has the line ``MARK``. It is ordinary Python that ``mypyc`` translates,
those of a folder together so that they call each other as C does, in whichever room they are.

An editable install gets the compiled modules next to their sources, where Python prefers them. A
source that is edited afterwards would not be run any more: the name of the library has a
fingerprint of the sources in it, which the tests compare with them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "BARNABAS_COMPILE"
NEEDED = ["mypy[mypyc]>=2.4", "setuptools>=77"]
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
MARK = "# Compiled: see hatch_build.py."
BUILD = """
import sys
from mypyc.build import mypycify
from setuptools import Distribution
group, library, level, *sources = sys.argv[1:]
modules = mypycify(sources, group_name=group, opt_level=level, target_dir=library + "-c")
if sys.platform != "win32":
    # Functions that no other library can replace may be called directly, and be inlined. All
    # modules have the same list of flags.
    modules[0].extra_compile_args.append("-fvisibility=hidden")
build = Distribution({"name": "barnabas", "ext_modules": modules}).get_command_obj("build_ext")
build.build_lib, build.build_temp = library, library + "-o"
build.ensure_finalized()
build.run()
"""


class CompileHook(BuildHookInterface):  # type: ignore[type-arg] # Its parameter is for plugins.
    """
    The build hook that hatchling finds in this file.
    """

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        # What is compiled is checked first, and for that what it imports has to be there.
        return [*NEEDED, *self.metadata.core.dependencies] if wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self.work = Path(tempfile.mkdtemp(prefix="barnabas-compile-"))
        root, folders = Path(self.root), self.config["folders"]
        if version == "editable":
            for folder in folders:
                remove_compiled(root / folder)
        if wanted():
            for folder, files in all_compiled(root, folders, self.work).items():
                for built in files:
                    self.place(built, self.work / folder, root / folder, version, build_data)
        if os.environ.get(VARIABLE) == "auto" and not wanted():
            self.app.display_info("No C compiler or no Python.h: a build of plain Python.")

    def place(
        self, built: Path, work: Path, folder: Path, version: str, build_data: dict[str, Any]
    ) -> None:
        """
        Put a compiled module next to its source, or into the wheel.
        """
        inside = built.relative_to(work)
        if version == "editable":
            shutil.copy(built, folder / inside)
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"][str(built)] = str(PurePosixPath(inside))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        shutil.rmtree(self.work)


def wanted() -> bool:
    """
    Whether to compile.

    Raises:
        SystemExit: it is demanded, but cannot be done.
    """
    answer = os.environ.get(VARIABLE, "0")
    missing = [what for what, there in requirements() if not there]
    match answer:
        case "0" | "":
            return False
        case "auto":
            return not missing
        case "1":
            if missing:
                raise SystemExit(f"{VARIABLE}=1, but there is no {' and no '.join(missing)}.")
            return True
    raise SystemExit(f"{VARIABLE} must be 0, 1 or auto, not {answer!r}.")


def requirements() -> Iterator[tuple[str, bool]]:
    """
    What compiling needs, and whether it is there.
    """
    header = Path(sysconfig.get_path("include"), "Python.h")
    yield f"{header}", header.exists()
    if sys.platform == "win32":
        installer = Path(
            os.environ.get("PROGRAMFILES(X86)", ""), "Microsoft Visual Studio/Installer/vswhere.exe"
        )
        yield "Visual C++", installer.exists() or shutil.which("cl") is not None
    else:
        compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
        yield f"C compiler ({compiler})", shutil.which(compiler.split()[0]) is not None


def all_compiled(root: Path, folders: list[str], work: Path) -> dict[str, list[Path]]:
    """
    What the modules of all *folders* become, as many of them at a time as there are cores; first
    those that take longest.
    """
    sources = {folder: sources_in(root / folder) for folder in folders}
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        running = {
            folder: threads.submit(compiled, root, folder, sources[folder], work / folder)
            for folder in sorted(folders, key=lambda folder: -len(sources[folder]))
            if sources[folder]
        }
        return {folder: built.result() for folder, built in running.items()}


def sources_in(folder: Path) -> list[Path]:
    """
    The modules that are to be compiled.
    """
    return [
        source
        for source in sorted(folder.rglob("*.py"))
        if MARK in source.read_text(encoding="utf-8").splitlines()
    ]


def compiled(root: Path, folder: str, sources: list[Path], work: Path) -> list[Path]:
    """
    The files that *sources* of *folder* become: one for each, and one that they share.
    """
    group = f"barnabas.{folder}._compiled_{fingerprint(sources)}"
    paths = [str(source.relative_to(root)) for source in sources]
    level = os.environ.get("BARNABAS_OPTIMIZATION", "3")
    subprocess.run(
        [sys.executable, "-c", BUILD, group, str(work), level, *paths],
        cwd=root,
        check=True,
        # Two at a time would write into the same one.
        env={**os.environ, "MYPY_CACHE_DIR": f"{work}-types"},
    )
    built = sorted(work.rglob(f"*{SUFFIX}"))
    assert len(built) == len(sources) + 1, built
    return built


def fingerprint(sources: list[Path]) -> str:
    """
    Eight digits that change with any of the *sources*.
    """
    contents = hashlib.sha256()
    for source in sources:
        contents.update(source.read_bytes())
    return contents.hexdigest()[:8]


def remove_compiled(folder: Path) -> None:
    """
    Take away what an earlier editable install has put next to the sources.
    """
    for old in folder.rglob(f"*{SUFFIX}"):
        old.unlink()
