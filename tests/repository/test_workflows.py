"""
The workflows of GitHub.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.support.maven import PrerequisiteMissing, cache

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / ".github" / "workflows"
WORKFLOWS: Final = sorted(path.name for path in FOLDER.glob("*.yml"))
ACTIONLINT: Final = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"
ON_THE_RUNNER: Final = {"python3", "make", "gcc", "maven", "nodejs", "npm", "chromium"}
"""Packages of Debian whose programs the runner's image has."""


def workflow(name: str) -> dict[Any, Any]:
    """
    Parse a workflow. YAML takes the key ``on`` for a boolean.
    """
    parsed: dict[Any, Any] = yaml.safe_load((FOLDER / name).read_text())
    return parsed


def steps_of(name: str) -> list[dict[str, Any]]:
    """
    Collect the steps of all jobs of a workflow.
    """
    return [step for job in workflow(name)["jobs"].values() for step in job.get("steps", [])]


@pytest.fixture(scope="module")
def actionlint() -> str:
    """
    Find the checker, or build it where Go is installed.
    """
    if (program := shutil.which("actionlint")) is not None:
        return program
    if (go := shutil.which("go")) is None:
        raise PrerequisiteMissing("no actionlint on the path, and no go to build it with")
    folder = cache(ACTIONLINT.rpartition("/")[2])
    done = subprocess.run(
        [go, "install", ACTIONLINT],
        env=os.environ | {"GOBIN": str(folder)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    if done.returncode:
        raise PrerequisiteMissing(f"go install {ACTIONLINT}: {done.stderr.strip()[-200:]}")
    return str(folder / "actionlint")


@pytest.mark.interop
def test_actionlint_accepts_every_workflow(actionlint: str) -> None:
    command = [actionlint, "-shellcheck=", "-pyflakes=", "-no-color"]
    done = subprocess.run(
        [*command, *WORKFLOWS], cwd=FOLDER, capture_output=True, text=True, check=False
    )

    assert (0, "") == (done.returncode, done.stdout + done.stderr)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_action_is_pinned_by_commit_with_its_version_in_a_comment(name: str) -> None:
    used = re.findall(r"uses: +(\S.*)", (FOLDER / name).read_text())

    for action in used:
        if action.startswith("./"):
            assert (ROOT / action).is_file()
        else:
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_an_action_has_one_version_in_all_workflows() -> None:
    texts = "\n".join((FOLDER / name).read_text() for name in WORKFLOWS)
    pins = set(re.findall(r"uses: +([\w-]+/\S+) # \S+", texts))

    assert len(pins) >= 6
    assert len(pins) == len({pin.partition("@")[0] for pin in pins})


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_reads_the_repository_and_writes_only_where_a_job_says_so(name: str) -> None:
    assert {"contents": "read"} == workflow(name)["permissions"]
    for step in steps_of(name):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_job_has_a_time_limit(name: str) -> None:
    for job in workflow(name)["jobs"].values():
        assert "uses" in job or job["timeout-minutes"] <= 120


def test_tests_run_the_make_targets_of_ci() -> None:
    lines = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line[:1] != "#"]
    in_ci = set(re.findall(r"^(?:exec )?make (?:-\S+ )?([a-z]+)", "\n".join(lines), re.MULTILINE))
    runs = "\n".join(step.get("run", "") for step in steps_of("tests.yml"))
    in_workflow = set(re.findall(r"^make ([a-z]+)", runs, re.MULTILINE))

    assert "test" in in_ci
    assert set() == in_ci - in_workflow
    assert {"test", "prove"} <= in_workflow


def test_tests_install_the_packages_of_ci() -> None:
    needed = re.findall(r"^need \S+ (\S+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    installs = "\n".join(step.get("run", "") for step in steps_of("tests.yml"))

    assert "kcat" in needed
    # docker compose is a plugin there.
    missing = set(needed) - ON_THE_RUNNER - {"docker-compose"} - set(installs.split())
    assert set() == missing


def test_tests_run_on_the_oldest_python_and_on_the_one_of_the_image() -> None:
    pythons = workflow("tests.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (of_the_image,) = re.findall(
        r"^ARG BASE=python:([\d.]+)", (ROOT / "Dockerfile").read_text(), re.M
    )

    assert project["requires-python"] == f">={pythons[0]}"
    assert of_the_image == pythons[-1]


def test_wheels_are_compiled_for_every_python_of_the_classifiers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    prefix = "Programming Language :: Python :: "
    pythons = [
        each.removeprefix(prefix)
        for each in project["project"]["classifiers"]
        if each.startswith(prefix)
    ]
    options = project["tool"]["cibuildwheel"]

    assert [f"cp{python.replace('.', '')}-*" for python in pythons] == options["build"]
    assert "1" == options["environment"]["BARNABAS_COMPILE"]
    (script,) = re.findall(r"\{project\}/(\S+)", options["test-command"])
    assert (ROOT / script).is_file()


def test_wheels_are_built_for_linux_macos_and_windows() -> None:
    include = workflow("wheels.yml")["jobs"]["compiled"]["strategy"]["matrix"]["include"]

    assert {"ubuntu", "macos", "windows"} == {each["runner"].split("-")[0] for each in include}


def test_the_image_is_built_for_both_processors() -> None:
    include = workflow("image.yml")["jobs"]["build"]["strategy"]["matrix"]["include"]

    assert {"linux/amd64", "linux/arm64"} == {each["platform"] for each in include}


def test_packages_are_published_by_a_tag_after_the_tests_without_a_secret() -> None:
    publish = workflow("publish.yml")
    packages = publish["jobs"]["packages"]

    assert {"push": {"tags": ["v*"]}} == publish[True]
    assert {"tests", "wheels"} <= set(packages["needs"])
    assert {"id-token": "write"} == packages["permissions"]
    assert "secrets." not in (FOLDER / "publish.yml").read_text()


def test_nothing_is_published_before_the_tag_is_checked() -> None:
    jobs = workflow("publish.yml")["jobs"]

    def follows_check(name: str) -> bool:
        needs = jobs[name].get("needs", [])
        earlier = [needs] if isinstance(needs, str) else needs
        return name == "version" or (bool(earlier) and all(map(follows_check, earlier)))

    (check,) = [step["run"] for step in jobs["version"]["steps"] if "run" in step]
    assert "--check-tag" in check
    assert all(map(follows_check, jobs))


def test_every_artifact_that_is_published_is_one_that_wheels_upload() -> None:
    uploaded = [
        step["with"]["name"] for step in steps_of("wheels.yml") if "name" in step.get("with", {})
    ]
    (pattern,) = [
        step["with"]["pattern"]
        for step in steps_of("publish.yml")
        if "pattern" in step.get("with", {})
    ]

    assert 2 == len(uploaded)
    assert all(name.startswith(pattern.removesuffix("*")) for name in uploaded)


def test_newer_versions_of_pinned_actions_are_proposed() -> None:
    updates = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text())["updates"]

    assert "github-actions" in [each["package-ecosystem"] for each in updates]
