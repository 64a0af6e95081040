"""
kafka-python's own integration tests, run against this broker.

They come with the source distribution of the installed version, except for two small files: an
empty ``test/__init__.py`` and ``test/service.py``, which starts brokers. As the broker runs
already, a stand-in replaces the latter. It starts nothing, and goes around a fault of the client.
The tests of SASL want a broker for each mechanism; a fixture gives them the same one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.interop.conftest import new_broker
from tests.support.broker_process import BrokerProcess
from tests.support.commands import run
from tests.support.maven import PrerequisiteMissing
from tests.support.sasl_client import add_scram_user

pytestmark = pytest.mark.prove

MISSING: Mapping[str, str] = {}
"""
The tests that fail, each with the feature that Barnabas lacks. One that begins to pass has to leave
the list.
"""

MODULES = ("admin", "consumer", "producer")
KAFKA_VERSION = "4.3.0"
"""
What kafka-python takes the broker for, by the APIs that it offers.
"""

_SERVICE = """
import threading
import time

from kafka.cluster import ClusterMetadata

set_topics = ClusterMetadata.set_topics


def set_topics_after_the_first_answer(self, topics):
    # Told of topics while its first question for metadata is under way, which names none,
    # kafka-python (3.0.12) takes the answer for one about them and asks again after five minutes.
    # Without an api_version a consumer waits for that answer first; these tests give one.
    until = time.monotonic() + 30
    while (
        not threading.current_thread().name.startswith("kafka-io-")
        and (self.metadata_refresh_in_progress or not self._last_successful_refresh_ms)
        and time.monotonic() < until
    ):
        time.sleep(0.001)
    return set_topics(self, topics)


ClusterMetadata.set_topics = set_topics_after_the_first_answer


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    stop = close = dump_logs = open


class SpawnedService:
    pass
"""

_FIXTURE = """

from types import SimpleNamespace


@pytest.fixture(scope="module")
def kafka_broker_factory():
    host, port = os.environ["SASL_LISTENER"].split(":")

    def factory(**params):
        broker = KafkaFixture.instance(0, host=host, port=int(port), external=True, **params)
        admin = KafkaAdminClient(**client_params(broker, "topics"))
        broker.get_topic_names = admin.list_topics
        return broker

    yield factory
"""
USER = "alice"
PASSWORD = "alice-secret"
LISTENER = "SASL_PLAINTEXT"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """
    A directory in which the tests can be run.
    """
    wanted = f"kafka-python=={version('kafka-python')}"
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-binary", ":all:", "--no-deps"]
    got = run(*pip, wanted, cwd=tmp_path)
    if got.returncode != 0:
        raise PrerequisiteMissing(
            f"the source of {wanted} cannot be had: {got.stderr.strip()[-200:]}"
        )
    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        source.extractall(tmp_path, filter="data")
    [root] = (path for path in tmp_path.iterdir() if path.is_dir())
    (root / "test" / "__init__.py").touch()
    (root / "test" / "service.py").write_text(_SERVICE)
    (root / "servers" / KAFKA_VERSION / "kafka-bin").mkdir(parents=True)
    return root


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """
    A broker with what the suite writes into the configuration of the brokers that it starts.
    """
    broker = new_broker(
        tmp_path / "broker",
        secured=[LISTENER],
        node__id="0",
        num__partitions="4",
        group__min__session__timeout__ms="1000",
        # Some records are of 1970, and have to be there for as long as a busy machine takes.
        log__retention__ms="-1",
        authorizer__class__name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        allow__everyone__if__no__acl__found="true",
        sasl__enabled__mechanisms="PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    )
    broker.settings["advertised.listeners"] = broker.listeners
    broker.settings["listener.name.sasl_plaintext.plain.sasl.jaas.config"] = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        f' user_{USER}="{PASSWORD}";'
    )
    with broker:
        yield broker


def test_failures_of_the_kafka_python_suite_are_the_known_ones(
    suite: Path, own_broker: BrokerProcess
) -> None:
    """
    The failures are those of ``MISSING``, no more and no fewer.
    """
    passed, failed = _run(suite, MODULES, KAFKA_URI=f"kafka://{own_broker.bootstrap}")

    print(*(f"{name}: {reason}" for name, reason in sorted(failed.items())), sep="\n")
    assert MISSING.keys() == failed.keys()
    assert len(passed) >= 36


def test_kafka_python_users_authenticate(suite: Path, own_broker: BrokerProcess) -> None:
    add_scram_user(own_broker.port, USER, PASSWORD)
    with (suite / "test" / "integration" / "conftest.py").open("a") as conftest:
        conftest.write(_FIXTURE)

    passed, failed = _run(suite, ["sasl"], SASL_LISTENER=f"127.0.0.1:{own_broker.ports[LISTENER]}")

    assert failed == {}
    assert len(passed) == 9


def _run(
    suite: Path, modules: Iterable[str], **environment: str
) -> tuple[set[str], dict[str, str]]:
    """
    The names of the tests that passed, and those that failed with the first line of the reason.
    """
    report = suite / "report.xml"
    files = [f"test/integration/test_{module}_integration.py" for module in modules]
    quiet = ("-q", "-p", "no:cacheprovider", "-o", "addopts=", "-o", "log_level=")
    limits = ("--timeout", "180", "--junitxml", str(report))
    with (suite / "output").open("wb") as output:
        subprocess.run(
            [sys.executable, "-m", "pytest", *quiet, *limits, *files],
            cwd=suite,
            env=os.environ | {"KAFKA_VERSION": KAFKA_VERSION} | environment,
            stdout=output,
            stderr=output,
            timeout=600,
            check=False,
        )
    print((suite / "output").read_text()[-4000:])
    passed, failed = set(), {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("name", "")
        problem = case.find("failure") if case.find("failure") is not None else case.find("error")
        if problem is not None:
            failed[name] = (problem.get("message") or "").splitlines()[0]
        elif case.find("skipped") is None:
            passed.add(name)
    return passed, failed
