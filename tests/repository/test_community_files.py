"""
Files that people and their tools look for in a repository.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from configparser import ConfigParser
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.support.maven import PrerequisiteMissing

ROOT: Final = Path(__file__).parents[2]
GITHUB: Final = ROOT / ".github"
FORMS: Final = sorted(
    path.name for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"
)
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())
MAKEFILE: Final = (ROOT / "Makefile").read_text()


def tracked() -> list[Path]:
    """
    List the text files under version control.
    """
    command = ["git", "grep", "-I", "--name-only", "-e", ""]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PrerequisiteMissing(f"no git repository to list: {done.stderr.strip()}")
    return [ROOT / name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.mark.parametrize("name", FORMS)
def test_an_issue_form_has_what_github_requires(name: str) -> None:
    form = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / name).read_text())
    inputs = [field for field in form["body"] if field["type"] != "markdown"]
    ids = [field["id"] for field in inputs]

    assert form["name"]
    assert form["description"]
    assert len(ids) == len(set(ids))
    assert all(field["attributes"]["label"] for field in inputs)
    assert any(field.get("validations", {}).get("required") for field in inputs)


def test_a_bug_report_asks_for_the_version_by_a_command_that_exists() -> None:
    (form,) = [name for name in FORMS if name == "bug.yml"]

    assert "barnabas --version" in (GITHUB / "ISSUE_TEMPLATE" / form).read_text()


def test_private_reports_take_one_route() -> None:
    route = re.compile(
        r'"Report a vulnerability"\s+on\s+the\s+Security\s+page\s+of\s+this\s+repository'
    )

    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md"):
        assert route.search((ROOT / name).read_text()), name


def test_the_code_of_conduct_names_its_source_with_its_version() -> None:
    text = " ".join((ROOT / "CODE_OF_CONDUCT.md").read_text().split())

    assert "Contributor Covenant, version 2.1" in text
    assert "contributor-covenant.org/version/2/1/" in text


def test_a_pull_request_names_make_targets_that_exist() -> None:
    targets = re.findall(r"`make (\w+)`", (GITHUB / "PULL_REQUEST_TEMPLATE.md").read_text())

    assert "test" in targets
    assert all(re.search(rf"^{target}:", MAKEFILE, re.MULTILINE) for target in targets)


def hooks() -> list[dict[str, Any]]:
    """
    Read the hooks of pre-commit.
    """
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    (repository,) = config["repos"]
    assert "local" == repository["repo"]
    found: list[dict[str, Any]] = repository["hooks"]
    return found


def test_hooks_run_tools_of_the_dependency_groups() -> None:
    needed = {
        re.split(r"[>=\[]", each)[0]
        for group in PROJECT["dependency-groups"].values()
        for each in group
        if isinstance(each, str)
    }

    assert ["ruff", "ruff-format", "codespell"] == [hook["id"] for hook in hooks()]
    for hook in hooks():
        assert "system" == hook["language"]
        assert hook["entry"].split()[0].removeprefix(".venv/bin/") in needed


def test_the_spelling_hook_checks_the_files_of_make_lint() -> None:
    (checked,) = re.findall(r"^\t@\$\(BIN\)/codespell \*\.md (.+)$", MAKEFILE, re.MULTILINE)
    (hook,) = [hook for hook in hooks() if hook["id"] == "codespell"]
    pattern = re.compile(hook["files"])

    assert pattern.search("README.md")
    assert not pattern.search("release.py")
    for folder in checked.split():
        assert pattern.search(f"{folder}/page.md"), folder
    assert not pattern.search("tests/test_links.py")


def test_editors_wrap_code_where_ruff_does() -> None:
    config = ConfigParser()
    config.read_string("[top]\n" + (ROOT / ".editorconfig").read_text())

    assert str(PROJECT["tool"]["ruff"]["line-length"]) == config["*.py"]["max_line_length"]


def test_every_file_is_as_the_editor_configuration_has_it() -> None:
    wrong = []
    for path in tracked():
        content = path.read_bytes()
        if content and not content.endswith(b"\n"):
            wrong.append(f"{path} does not end with a newline")
        if b"\r\n" in content:
            wrong.append(f"{path} has line ends of Windows")
        if path.suffix != ".svg" and re.search(rb"[ \t]$", content, re.MULTILINE):
            wrong.append(f"{path} has spaces at the end of a line")
    assert [] == wrong
