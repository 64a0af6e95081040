"""
What ``make release`` checks and prints.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import release

ROOT: Final = Path(__file__).parents[2]
ARCHIVE: Final = Path("tests/interop/pinned/barnabas-1.2.3.tar.xz")
RELEASED: Final = (
    "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2030-01-02\n\n### Fixed\n\n- A bug.\n"
)


def git(folder: Path, *arguments: str) -> None:
    """
    Run git, with an author, and with no configuration of this machine.
    """
    identity = {
        f"GIT_{role}_{part}": "barnabas@localhost"
        for role in ("AUTHOR", "COMMITTER")
        for part in ("NAME", "EMAIL")
    }
    apart = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    environment = os.environ | identity | apart
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """
    A commit of version 1.2.3 with its changelog, code and pinned directory.
    """
    for name, text in {
        "pyproject.toml": '[project]\nname = "barnabas"\nversion = "1.2.3"\n',
        "CHANGELOG.md": RELEASED,
        "server/code.py": "",
        "docs/page.md": "",
        str(ARCHIVE): "archive",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def commit(checkout: Path) -> None:
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "--message", "a change")


def faults(checkout: Path) -> list[str]:
    version = release.version_of(checkout)
    return [
        *release.wrong_checkout(checkout, version),
        *release.wrong_changelog(checkout, version),
    ]


def test_a_clean_commit_whose_changelog_has_the_version_is_accepted(checkout: Path) -> None:
    assert [] == faults(checkout)


def test_a_change_without_a_commit_is_refused(checkout: Path) -> None:
    (checkout / "new.py").touch()

    (fault,) = faults(checkout)
    assert "changes without a commit" in fault


def test_a_released_version_is_refused(checkout: Path) -> None:
    git(checkout, "tag", "v1.2.3")

    (fault,) = faults(checkout)
    assert "v1.2.3 exists" in fault


@pytest.mark.parametrize(
    "text",
    [
        RELEASED.replace("1.2.3", "1.2.4"),
        RELEASED.replace("1.2.3", "1x2.3"),
        RELEASED.replace(" - 2030-01-02", ""),
        RELEASED.replace("## [Unreleased]\n", "## [Unreleased]\n\n### Added\n\n- A command.\n"),
        "# Changelog\n",
    ],
    ids=["other-version", "similar-version", "no-date", "unreleased-entries", "empty"],
)
def test_a_changelog_that_does_not_begin_with_the_version_is_refused(
    checkout: Path, text: str
) -> None:
    (checkout / "CHANGELOG.md").write_text(text)
    commit(checkout)

    (fault,) = faults(checkout)
    assert "'## [1.2.3] - YYYY-MM-DD'" in fault


def test_a_directory_is_pinned_once_for_the_code_that_writes_it(checkout: Path) -> None:
    assert release.is_pinned(checkout, ARCHIVE)

    (checkout / "docs" / "page.md").write_text("text")
    commit(checkout)
    assert release.is_pinned(checkout, ARCHIVE)

    (checkout / "server" / "code.py").write_text("pass")
    commit(checkout)
    assert not release.is_pinned(checkout, ARCHIVE)


def test_a_directory_that_does_not_exist_is_pinned(checkout: Path) -> None:
    assert not release.is_pinned(checkout, ARCHIVE.with_name("barnabas-1.2.4.tar.xz"))


def test_the_code_that_decides_about_pinning_exists() -> None:
    assert all((ROOT / folder / "barnabas").is_dir() for folder in release.PACKAGES)


def test_the_commands_that_remain_name_the_version_and_the_tests() -> None:
    text = "\n".join(release.remaining("1.2.3", ARCHIVE))

    for command in (
        f"git add {ARCHIVE}",
        "make test && make prove",
        'git tag -a v1.2.3 -m "Barnabas 1.2.3"',
        "git push origin HEAD v1.2.3",
        "twine upload dist/barnabas-1.2.3*.whl dist/barnabas-1.2.3.tar.gz",
        "docker buildx build --platform linux/amd64,linux/arm64",
    ):
        assert command in text
    assert "git add" not in "\n".join(release.remaining("1.2.3", None))


def test_a_release_stops_before_it_builds_where_a_check_fails(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "new.py").touch()
    monkeypatch.setattr(release, "is_pinned", lambda *_: pytest.fail("a check has failed"))

    with pytest.raises(SystemExit, match="changes without a commit"):
        release.prepare(checkout, "1.2.3")
    assert not (checkout / "dist").exists()


def test_a_release_pins_then_builds_then_prints_what_remains(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """
    The two programs that take minutes are replaced by ones that print their arguments.
    """
    (checkout / "server" / "code.py").write_text("pass")
    for program in ("tests/interop/pinned/__main__.py", "build_wheels.py"):
        (checkout / program).write_text("import sys; print(sys.argv[1:], flush=True)")
    (checkout / ".gitignore").write_text("/dist/\n__pycache__/\n")
    (checkout / "dist").mkdir()
    (checkout / "dist" / "barnabas-1.2.2.tar.gz").touch()
    commit(checkout)
    monkeypatch.setenv("PYTHONPATH", str(checkout))

    release.prepare(checkout, "1.2.3")

    printed = capfd.readouterr().out
    order = ["pinning a log directory", "building packages", "['--out', 'dist']", "What remains"]
    assert sorted(order, key=printed.index) == order
    assert f"git add {ARCHIVE}" in printed
    assert [] == list((checkout / "dist").iterdir())


@pytest.mark.parametrize(("tag", "refused"), [("v1.2.3", False), ("1.2.3", True), ("v1.2", True)])
def test_a_tag_is_the_version_after_a_v(tag: str, refused: bool) -> None:
    assert refused == bool(list(release.wrong_tag(tag, "1.2.3")))


def test_the_script_prints_the_version_for_workflows() -> None:
    command = [sys.executable, "release.py", "--print-version"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    assert f"{release.version_of(ROOT)}\n" == done.stdout


def test_make_release_runs_the_script() -> None:
    rule = re.search(
        r"^release: .*## .*\n\t@\$\(BIN\)/python release\.py$",
        (ROOT / "Makefile").read_text(),
        re.MULTILINE,
    )

    assert rule is not None
