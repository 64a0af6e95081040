"""
Prepares a release: checks the checkout, pins a directory, builds the packages, and prints the
commands that remain.

    make release

It asks a package index for build tools. Nothing is uploaded, committed or tagged.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent
PACKAGES: Final = ("protocol", "storage", "coordination", "server")
"""
The folders whose code decides what a log directory contains.
"""


def main() -> None:
    """
    Prepare a release, or answer one question of a workflow.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0].strip())
    question = parser.add_mutually_exclusive_group()
    question.add_argument("--print-version", action="store_true", help="print the version only")
    question.add_argument("--check-tag", metavar="TAG", help="check that TAG names the version")
    given = parser.parse_args()
    version = version_of(ROOT)
    if given.print_version:
        print(version)
    elif given.check_tag is not None:
        stop_at([*wrong_tag(given.check_tag, version), *wrong_changelog(ROOT, version)])
    else:
        prepare(ROOT, version)


def prepare(root: Path, version: str) -> None:
    """
    Do every step of a release that stays on this machine.
    """
    stop_at([*wrong_checkout(root, version), *wrong_changelog(root, version)])
    archive = Path("tests", "interop", "pinned", f"barnabas-{version}.tar.xz")
    to_pin = not is_pinned(root, archive)
    if to_pin:
        print("release: pinning a log directory of this version", flush=True)
        subprocess.run([sys.executable, "-m", "tests.interop.pinned"], cwd=root, check=True)
    print("release: building packages in dist", flush=True)
    for old in (root / "dist").glob("*"):
        old.unlink()
    subprocess.run([sys.executable, "build_wheels.py", "--out", "dist"], cwd=root, check=True)
    print("\n".join(["", "What remains:", *remaining(version, archive if to_pin else None)]))


def version_of(root: Path) -> str:
    """
    Read the version, which ``pyproject.toml`` alone states.
    """
    version: str = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    return version


def wrong_tag(tag: str, version: str) -> Iterator[str]:
    """
    Check the name of a tag.
    """
    if tag != f"v{version}":
        yield f"The tag is {tag}; pyproject.toml has version {version}, whose tag is v{version}."


def wrong_checkout(root: Path, version: str) -> Iterator[str]:
    """
    Check that the checkout is a commit, and that its version is not released.
    """
    if git(root, "status", "--porcelain"):
        yield "There are changes without a commit: git status lists them."
    if git(root, "tag", "--list", f"v{version}"):
        yield f"The tag v{version} exists: pyproject.toml needs a new version."


def wrong_changelog(root: Path, version: str) -> Iterator[str]:
    """
    Check that the changelog's first section with entries is that of *version*.
    """
    text = (root / "CHANGELOG.md").read_text()
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    filled = [section.partition("\n")[0] for section in sections if "\n- " in section]
    if not filled or not re.fullmatch(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d", filled[0]):
        first = f", but '## {filled[0]}'" if filled else ""
        yield (
            f"CHANGELOG.md does not begin with '## [{version}] - YYYY-MM-DD'{first}: rename the"
            " section [Unreleased]."
        )


def is_pinned(root: Path, archive: Path) -> bool:
    """
    Whether *archive* was made by the code of this commit.
    """
    pinned = git(root, "log", "-1", "--format=%H", "--", archive)
    return bool(pinned) and not git(root, "diff", "--name-only", pinned, "HEAD", "--", *PACKAGES)


def remaining(version: str, archive: Path | None) -> Iterator[str]:
    """
    List the commands that need a decision, a network or a credential.
    """
    if archive is not None:
        yield f"  git add {archive}"
        yield f'  git commit -m "tests: the directory of version {version} is pinned"'
    yield "  make test && make prove"
    yield f'  git tag -a v{version} -m "Barnabas {version}"'
    yield f"  git push origin HEAD v{version}    # the workflow Publish does the rest"
    yield "Without that workflow:"
    yield f"  python -m twine upload dist/barnabas-{version}*.whl dist/barnabas-{version}.tar.gz"
    yield (
        "  docker buildx build --platform linux/amd64,linux/arm64 --push"
        f" --label org.opencontainers.image.version={version} --tag REGISTRY/barnabas:{version} ."
    )


def stop_at(faults: list[str]) -> None:
    """
    Print *faults* and end the process, unless there are none.
    """
    if faults:
        raise SystemExit("\n".join(f"release: {fault}" for fault in faults))


def git(root: Path, *arguments: object) -> str:
    """
    Run git in *root* and return its output.
    """
    command = ["git", *map(str, arguments)]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
