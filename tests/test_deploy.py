"""
The files of ``deploy`` are what systemd and Kubernetes take.
"""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from barnabas.server.cli import _parser
from barnabas.server.config import load_settings
from barnabas.server.http.app import PATHS

pytestmark = pytest.mark.interop

DEPLOY = Path(__file__).parents[1] / "deploy"
DOCKERFILE = DEPLOY.parent / "Dockerfile"
KUBERNETES = "1.31"


def objects() -> dict[str, Any]:
    found = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    return {each["kind"]: each for each in found}


def test_kubernetes_accepts_each_manifest() -> None:
    found = objects()

    assert {"Service", "StatefulSet"} == found.keys()
    for each in found.values():
        kubernetes_validate.validate(each, KUBERNETES, strict=True)


def test_pod_matches_the_image() -> None:
    """
    Its variables are options, its probes are paths, and its ports, user and volume are those
    of the image.
    """
    found = objects()
    spec = found["StatefulSet"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    image = DOCKERFILE.read_text()

    variables = {each["name"]: each["value"] for each in container["env"]}
    settings = load_settings(environment=variables)
    config = settings.config()
    assert [] == settings.unknown
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"] in PATHS
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert f"EXPOSE {ports['kafka']} {ports['http']}" in image
    assert config.barnabas_http_listener.endswith(f":{ports['http']}")
    assert {each["targetPort"] for each in found["Service"]["spec"]["ports"]} == ports.keys()
    (listener,) = config.client_listeners
    assert found["Service"]["metadata"]["name"] == listener.advertised_host
    data = next(each for each in container["volumeMounts"] if each["name"] == "data")
    assert f"VOLUME {data['mountPath']}" in image
    assert Path(data["mountPath"]) == config.log_directories[0].parent
    assert re.search(rf"--uid {spec['securityContext']['runAsUser']}\b", image)


@pytest.mark.parametrize("name", ["ExecStartPre", "ExecStart"])
def test_systemd_units_run_existing_commands(name: str) -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # as the standard library says
    unit.read(DEPLOY / "barnabas.service")
    program, *arguments = shlex.split(unit["Service"][name].removeprefix("-"))

    assert "barnabas" == Path(program).name
    _parser(arguments[0]).parse_args(arguments)
    assert {"Unit", "Service", "Install"} == {*unit.sections()}


def test_files_of_the_systemd_service_are_private() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # as the standard library says
    unit.read(DEPLOY / "barnabas.service")

    assert ("0077", "0700") == (unit["Service"]["UMask"], unit["Service"]["StateDirectoryMode"])
