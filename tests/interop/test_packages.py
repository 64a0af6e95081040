"""
The packages that a user installs: what is in them, and a record through the broker of one.
"""

from __future__ import annotations

import hashlib
import json
import re
import runpy
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container

from tests.interop.clients.base import PATIENCE, NewRecord
from tests.interop.clients.kafka_python import KafkaPython
from tests.interop.conftest import needs_program
from tests.support.broker_process import answers, free_port, wait_for
from tests.support.commands import output_of
from tests.support.compiled import FOLDERS, compilable
from tests.support.docker_image import BASE
from tests.support.maven import PrerequisiteMissing
from tests.support.wheel import ROOT, built_wheel, environment, plain_wheel, variables

pytestmark = pytest.mark.prove


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plain_wheel(tmp_path_factory.mktemp("wheel"))


def test_wheel_has_packages_licence_and_types_without_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    packages = {name.split("/")[1] for name in names if name.startswith("barnabas/")}

    assert wheel.name.endswith("-py3-none-any.whl")
    assert {*FOLDERS, "testing"} == packages
    assert {f"barnabas/{package}/py.typed" for package in packages} <= set(names)
    assert {"pyspark_barnabas/__init__.py", "pyspark_barnabas/py.typed"} <= set(names)
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert {"barnabas", "pyspark_barnabas"} == tops
    assert [] == [name for name in names if "/tests/" in name or name.startswith("tests")]
    assert 1 == sum(name.endswith("/licenses/LICENSE") for name in names)


def test_wheel_has_the_files_of_the_web_page(wheel: Path) -> None:
    place = "barnabas/server/http/page/static/"
    sources = ROOT / "server" / place
    names = zipfile.ZipFile(wheel).namelist()

    packed = {name.removeprefix(place) for name in names if name.startswith(place)}

    there = {each.relative_to(sources).as_posix() for each in sources.rglob("*") if each.is_file()}
    assert there == packed
    assert {"index.html", "app/main.js", "style/base.css"} <= packed


def test_wheel_is_reproducible(wheel: Path, tmp_path: Path) -> None:
    """
    Byte by byte, so that anybody can find out what is in a package that was downloaded.
    """
    again = plain_wheel(tmp_path)

    assert digest(wheel) == digest(again)


def test_compiled_wheel_is_reproducible(tmp_path: Path) -> None:
    """
    In whichever folder they are, and wherever the build tools are installed. Two modules stand for
    all that are compiled, which would take minutes.
    """
    needs_program("cc")
    wheels = []
    for name in ("short", "a-longer-name-of-a-folder"):
        source = tmp_path / name / "source"
        source.mkdir(parents=True)
        copy_sources(source, compiled={"varints.py", "xxhash32.py"})
        wheels.append(
            built_wheel(source, tmp_path / name, BARNABAS_COMPILE="1", BARNABAS_OPTIMIZATION="0")
        )

    names = zipfile.ZipFile(wheels[0]).namelist()
    assert 3 == sum(name.endswith(".so") for name in names)
    assert digest(wheels[0]) == digest(wheels[1])


def copy_sources(folder: Path, compiled: set[str]) -> None:
    """
    Copy what a wheel is made of, and leave the mark of modules to compile to those of these names.
    """
    for package in (*FOLDERS, "testing"):
        built = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / package, folder / package, ignore=built)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for source in compilable():
        if source.name not in compiled:
            copy = folder / source.relative_to(ROOT)
            copy.write_text(copy.read_text().replace("# Compiled: see hatch_build.py.\n", ""))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_bill_of_materials_lists_what_is_installed(wheel: Path, tmp_path: Path) -> None:
    pytest.importorskip("cyclonedx_py")
    listed = runpy.run_path(str(ROOT / "build_wheels.py"))["bill_of_materials"](wheel, tmp_path)
    bill = json.loads(listed.read_text())

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = {
        re.split(r"[>=<; ]", each)[0].lower().replace("_", "-")
        for each in (*project["dependencies"], *extras["http"], *extras["security"])
    }
    components = {each["name"].lower().replace("_", "-"): each for each in bill["components"]}

    assert "CycloneDX" == bill["bomFormat"]
    assert set() == needed - components.keys()
    assert all(each["version"] and each["purl"] for each in components.values())
    assert project["version"] == bill["metadata"]["component"]["version"]


def test_installed_wheel_serves_a_record(wheel: Path, tmp_path: Path) -> None:
    """
    In a fresh environment, with nothing in it but what the wheel asks for.
    """
    barnabas = environment(tmp_path / "venv", str(wheel)) / "barnabas"
    version = output_of(barnabas, "--version", cwd=tmp_path, env=variables())
    port = free_port()
    listeners = f"listeners=PLAINTEXT://127.0.0.1:{port}"
    broker = subprocess.Popen(
        [barnabas, "serve", "--ephemeral", "--set", listeners], cwd=tmp_path, env=variables()
    )
    try:
        wait_for(lambda: answers(port), "the broker of the wheel", PATIENCE)
        client = KafkaPython()
        client.produce(f"127.0.0.1:{port}", "orders", [NewRecord(b"from a wheel")], "none")
        seen = client.read(f"127.0.0.1:{port}", "orders", 1, 1)
    finally:
        broker.terminate()
        broker.wait(PATIENCE)

    assert version.endswith(" (plain Python)\n")
    assert [b"from a wheel"] == [each.value for each in seen]
    assert 0 == broker.returncode


def test_wheel_serves_a_record_on_another_system(engine: docker.DockerClient, wheel: Path) -> None:
    """
    The Python and the Debian of the container's base image.
    """
    port = free_port()
    listeners = f"listeners=PLAINTEXT://127.0.0.1:{port}"
    program = (
        f"pip install --quiet --root-user-action=ignore /wheels/{wheel.name}"
        f" && barnabas --version && exec barnabas serve --ephemeral --set {listeners}"
    )
    container = engine.containers.run(
        BASE,
        ["sh", "-c", program],
        volumes={str(wheel.parent): {"bind": "/wheels", "mode": "ro"}},
        network_mode="host",
        detach=True,
    )
    try:
        wait_for(lambda: answers(port) or ended(container), "the broker of the wheel", PATIENCE)
        if ended(container):
            raise PrerequisiteMissing(f"pip in a container: {container.logs().decode()[-1000:]}")
        client = KafkaPython()
        client.produce(f"127.0.0.1:{port}", "orders", [NewRecord(b"from a wheel")], "none")
        seen = client.read(f"127.0.0.1:{port}", "orders", 1, 1)
        container.stop(timeout=30)
        status = container.wait()["StatusCode"]
        says = container.logs().decode()
    finally:
        container.remove(force=True, v=True)

    assert " (plain Python)\n" in says
    assert [b"from a wheel"] == [each.value for each in seen]
    assert 0 == status


def ended(container: Container) -> bool:
    container.reload()
    return container.status == "exited"
