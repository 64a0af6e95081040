"""
Compiles the modules on the path of a record when a wheel is built.

``BARNABAS_COMPILE`` decides: ``0`` (the default) builds a wheel of plain Python for every system
within seconds, ``1`` compiles a wheel for this system, which takes minutes, or fails, and ``auto``
compiles where it finds a C compiler and Python's headers. ``barnabas --version`` prints which kind
is installed. ``BARNABAS_OPTIMIZATION`` is the level of the C compiler, 0 to 3; lower levels compile
faster.

A module is compiled if it contains the line ``MARK``. It is ordinary Python that ``mypyc``
translates. All compiled modules form one library, so they call each other directly, across
packages.

An editable install never compiles: Python would prefer the compiled modules to their sources, and
an edit would have no effect. ``compiled_copy.py`` compiles a checkout into a folder of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "BARNABAS_COMPILE"
NEEDED = ["mypy[mypyc]>=2.4", "setuptools>=77"]
SUFFIX = os.environ.get("SETUPTOOLS_EXT_SUFFIX") or sysconfig.get_config_var("EXT_SUFFIX")
MARK = "# Compiled: see hatch_build.py."
LIBRARY = "barnabas.protocol._compiled"
"""
The extension module that all compiled modules share.
"""

OFF_LINUX = [
    "--disable-error-code=attr-defined",
    "--disable-error-code=call-arg",
    "--disable-error-code=no-any-return",
    "--no-warn-unused-ignores",
]
"""
Options of the type checker on other systems. Some modules call functions that only Linux has, after
they ask for the system; the type stubs of other systems lack these functions. ``make types`` checks
the calls.
"""


class CompileHook(BuildHookInterface):  # type: ignore[type-arg] # Its parameter is for plugins.
    """
    The build hook that hatchling finds in this file.
    """

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        # What is compiled is checked first, and for that what it imports has to be there.
        core = self.metadata.core
        extras = core.optional_dependencies
        imported = [*core.dependencies, *extras["http"], *extras["security"]]
        return [*NEEDED, *imported] if wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self.work = Path(tempfile.mkdtemp(prefix="barnabas-compile-"))
        root, folders = Path(self.root), self.config["folders"]
        if version == "editable":
            for folder in folders:
                remove_compiled(root / folder)
        elif wanted():
            try:
                for built in compiled(root, sources_in(root, folders), self.work):
                    self.pack(built.relative_to(self.work), build_data)
            except subprocess.CalledProcessError:
                if demand() == "1":
                    raise
                self.app.display_warning("Compiling failed: a build of plain Python.")
        elif demand() == "auto":
            self.app.display_info("No C compiler or no Python.h: a build of plain Python.")

    def pack(self, built: Path, build_data: dict[str, Any]) -> None:
        """
        Put a compiled module next to its source in the wheel.
        """
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"][str(self.work / built)] = str(PurePosixPath(built))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        shutil.rmtree(self.work)


def demand() -> str:
    return os.environ.get(VARIABLE) or "0"


def wanted() -> bool:
    """
    Whether to compile.

    Raises:
        SystemExit: it is demanded, but cannot be done.
    """
    answer = demand()
    missing = [what for what, there in requirements() if not there]
    match answer:
        case "0":
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


def sources_in(root: Path, folders: list[str]) -> list[Path]:
    """
    The modules that are to be compiled.
    """
    return [
        source
        for folder in folders
        for source in sorted((root / folder).rglob("*.py"))
        if MARK in source.read_text(encoding="utf-8").splitlines()
    ]


def compiled(root: Path, sources: list[Path], work: Path) -> list[Path]:
    """
    The files in *work* that *sources* become: one for each, and one that they share.
    """
    paths = [str(source.relative_to(root)) for source in sources]
    # mypyc keeps settings in its modules, and ends the process when it fails.
    subprocess.run(
        [sys.executable, __file__, str(work), LIBRARY, *paths],
        cwd=root,
        check=True,
        env={**os.environ, "MYPY_CACHE_DIR": str(work / "types")},
    )
    built = sorted(work.rglob(f"*{SUFFIX}"))
    assert len(built) == len(sources) + 1, built
    return built


def build(work: str, group: str, *sources: str) -> None:
    """
    Compile *sources* into *work*, as many at a time as there are cores.
    """
    import mypyc  # noqa: PLC0415  # only there if it is asked to compile
    from mypyc.build import mypycify  # noqa: PLC0415  # likewise
    from setuptools import Distribution  # noqa: PLC0415  # likewise

    generated = f"{work}/c"
    library, *shims = mypycify(
        # Other modules are looked at for their types alone: some need what is not installed here.
        ["--follow-imports=silent", *([] if sys.platform == "linux" else OFF_LINUX), *sources],
        group_name=group,
        opt_level=os.environ.get("BARNABAS_OPTIMIZATION", "3"),
        target_dir=generated,
        multi_file=True,
    )
    # Where the headers of the modules are.
    library.include_dirs.append(str(Path(generated, *group.split(".")[:-1])))
    if sys.platform != "win32":
        # Functions that no other library can replace may be called directly, and be inlined. All
        # modules have the same list of flags.
        library.extra_compile_args += [
            "-fvisibility=hidden",
            # The same sources become the same bytes, in whichever folder they are compiled, and
            # wherever the headers are: assertions have the names of their files.
            "-g0",
            f"-ffile-prefix-map={work}=.",
            f"-ffile-prefix-map={Path(mypyc.__file__).parent}=mypyc",
            f"-ffile-prefix-map={sysconfig.get_path('include')}=python",
        ]
    distribution = Distribution({"name": "barnabas", "ext_modules": [library, *shims]})
    command = distribution.get_command_obj("build_ext")
    command.build_lib, command.build_temp = work, f"{work}/o"
    command.ensure_finalized()
    compile_side_by_side()
    command.run()


def compile_side_by_side() -> None:
    """
    Let setuptools compile the C sources of a library at the same time: it has many.
    """
    from setuptools._distutils.ccompiler import CCompiler  # noqa: PLC0415  # as in build()

    compile_in_turn = CCompiler.compile

    def compile_all(self: Any, sources: list[str], *args: Any, **options: Any) -> list[str]:
        def compile_one(source: str) -> list[str]:
            return compile_in_turn(self, [source], *args, **options)

        with ThreadPoolExecutor(os.cpu_count()) as threads:
            return list(chain.from_iterable(threads.map(compile_one, sources)))

    CCompiler.compile = compile_all


def remove_compiled(folder: Path) -> None:
    """
    Remove modules that earlier versions of this hook compiled next to their sources.
    """
    for old in folder.rglob(f"*{SUFFIX}"):
        old.unlink()


if __name__ == "__main__":
    build(*sys.argv[1:])
