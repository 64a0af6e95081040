"""
Apache Kafka and Barnabas take the same new key stores while they run, and refuse the same.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess, wait_for
from tests.support.certificates import HOST, Certificates, java_can_read
from tests.support.config_requests import BROKER, SET, change
from tests.support.sasl_client import SaslClient

pytestmark = pytest.mark.prove

LOCATION: Final = "listener.name.ssl.ssl.keystore.location"
NAMES: Final = (HOST, "localhost")
NEW: Final[dict[str, dict[str, Any]]] = {
    "renewed": {},
    "for-another-subject": {"common_name": "other"},
    "for-another-unit": {"unit": "Others"},
    "in-other-letters": {"unit": "BROKERS"},
    "with-a-name-less": {"names": NAMES[:1]},
    "with-another-name": {"names": (HOST, "example.org")},
    "with-a-name-more": {"names": (*NAMES, "example.org")},
    "with-the-first-names-again": {},
}
"""
In this order: each is compared with what counts then.
"""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    made = Certificates(tmp_path_factory.mktemp("certificates"))
    java_can_read(made.broker)
    return made


@pytest.fixture(scope="module", params=["", "dn", "san"])
def both(
    certificates: Certificates,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[BothBrokers]:
    # Each of Kafka's network threads takes a new store at its own time.
    settings = {"node.id": "1", "num.network.threads": "1", **certificates.settings()}
    if request.param:
        settings[f"ssl.allow.{request.param}.changes"] = "true"
    directory = tmp_path_factory.mktemp("brokers")
    with BothBrokers.side_by_side(directory, settings, secured=["SSL"]) as brokers:
        yield brokers.start()


def alter(broker: BrokerProcess, path: Path) -> int:
    request = change(BROKER, "1", (LOCATION, SET, str(path)))
    with SaslClient(broker.port) as client:
        code: int = client.ask(request, 1).responses[0].error_code
    return code


def presented(broker: BrokerProcess, certificates: Certificates) -> Any:
    """
    The certificate that a new connection sees.
    """
    context = certificates.context()
    context.check_hostname = False

    def wrap(plain: Any) -> ssl.SSLSocket:
        return context.wrap_socket(plain, server_hostname=HOST)

    with SaslClient(broker.ports["SSL"], wrap) as client:
        return client.socket.getpeercert()["serialNumber"]


def is_another(broker: BrokerProcess, certificates: Certificates, earlier: str) -> bool:
    return bool(presented(broker, certificates) != earlier)


def test_both_brokers_accept_the_same_keystore_changes(
    both: BothBrokers, certificates: Certificates
) -> None:
    seen: list[list[Any]] = [[], []]
    for name, options in NEW.items():
        names = options.get("names", NAMES)
        rest = {key: value for key, value in options.items() if key != "names"}
        path = java_can_read(certificates.issue(name, *names, **rest))
        before = [presented(broker, certificates) for broker in both]
        for broker, told in zip(both, seen, strict=True):
            told.append((name, alter(broker, path)))
        time.sleep(0.5)
        for broker, told, earlier in zip(both, seen, before, strict=True):
            if told[-1][1] == 0:
                # A broker on a busy machine needs longer.
                wait_for(partial(is_another, broker, certificates, earlier), "the store", 20)
            told.append(presented(broker, certificates))
    kafka, barnabas = seen
    assert kafka == barnabas
    assert {code for _, code in barnabas[::2]} == {0, 42}
