from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from barnabas.server.config import BrokerConfig
from barnabas.server.config.security import ListenerSecurityOptions
from barnabas.server.security.listeners import Security
from barnabas.server.security.tls.certificate import read_certificate
from barnabas.server.security.tls.context import ListenerTls, check_replacement
from barnabas.server.security.tls.subject import subject_of
from barnabas.storage.config.option_values import ConfigError
from barnabas.testing.manual_clock import ManualClock
from tests.support.certificates import HOST, Certificates

LOCATION: Final = "listener.name.ssl.ssl.keystore.location"
IDENTITIES: Final = (HOST, "localhost")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def started(certificates: Certificates, **options: str) -> tuple[Security, dict[str, str | None]]:
    texts: dict[str, str | None] = {
        "listeners": "SSL://127.0.0.1:1",
        **certificates.settings(),
        **options,
    }
    config = BrokerConfig.parse(texts)
    security = Security(config.client_listeners, lambda _mechanism, _user: None, ManualClock())
    security.configure(config.given)
    return security, texts


def subject(security: Security) -> str:
    tls = security._secured["SSL"].tls
    assert tls is not None
    return tls.chain[0].subject


CHANGES: Final[dict[str, tuple[dict[str, Any], bool, bool]]] = {
    "the same": ({}, False, False),
    "another subject": ({"common_name": "new"}, True, False),
    "another unit": ({"unit": "Others"}, True, False),
    "the subject in other letters": ({"unit": "BROKERS "}, False, False),
    "a name less": ({"names": IDENTITIES[:1]}, False, True),
    "another name": ({"names": (HOST, "example.org")}, False, True),
    "a name more": ({"names": (*IDENTITIES, "example.org")}, False, False),
    "all of it": ({"names": ("example.org",), "unit": "Others"}, True, True),
}
"""
Of each change: the new certificate, whether it is for another subject, and whether it lacks names.
"""


@pytest.mark.parametrize("dn", ["false", "true"])
@pytest.mark.parametrize("san", ["false", "true"])
@pytest.mark.parametrize("change", CHANGES)
def test_new_certificate_must_have_the_same_subject_and_names(
    certificates: Certificates, change: str, dn: str, san: str
) -> None:
    options, other_dn, lacks_san = CHANGES[change]
    names = options.get("names", IDENTITIES)
    new = certificates.issue("new", *names, **{k: v for k, v in options.items() if k != "names"})
    security, texts = started(
        certificates,
        **{"ssl.allow.dn.changes": dn, "listener.name.ssl.ssl.allow.san.changes": san},
    )
    is_refused = (other_dn and dn == "false") or (lacks_san and san == "false")

    if not is_refused:
        security.check({**texts, LOCATION: str(new)})
        return
    with pytest.raises(ConfigError, match=r"listener SSL: the (new )?certificate"):
        security.check({**texts, LOCATION: str(new)})


@pytest.mark.parametrize(
    ("options", "is_allowed"),
    [
        ({}, False),
        ({"ssl.allow.dn.changes": "true"}, False),
        ({"ssl.allow.san.changes": "true"}, False),
        ({"ssl.allow.dn.changes": "true", "ssl.allow.san.changes": "true"}, True),
    ],
)
def test_new_keystore_must_have_as_many_entries(
    certificates: Certificates, options: dict[str, str], is_allowed: bool
) -> None:
    security, _ = started(certificates)
    old = security._secured["SSL"].tls
    assert old is not None
    new = ListenerTls(old.context, 2, old.chain)
    parsed = ListenerSecurityOptions.parse(dict(options))

    if is_allowed:
        check_replacement(old, new, parsed)
        return
    with pytest.raises(ConfigError, match="1 entries, and the new one 2"):
        check_replacement(old, new, parsed)


def test_changed_keystore_file_is_checked_when_its_option_is_set_again(
    tmp_path: Path,
) -> None:
    certificates = Certificates(tmp_path)
    security, texts = started(certificates)
    before = subject(security)

    certificates.issue("broker", *IDENTITIES, common_name="other")
    security.check(texts)
    with pytest.raises(ConfigError, match="the certificate is for"):
        security.check(texts, reads_again=True)

    certificates.issue("broker", *IDENTITIES)
    security.check(texts, reads_again=True)
    security.reconfigure(texts)
    assert before == subject(security)


def test_keystore_file_that_changes_during_the_check_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificates = Certificates(tmp_path)
    security, texts = started(certificates)
    before = security._secured["SSL"].tls
    certificates.issue("broker", *IDENTITIES, common_name="other")

    with caplog.at_level(logging.ERROR):
        security.reconfigure(texts)

    assert security._secured["SSL"].tls is before
    assert "The listeners stay as they are: listener SSL: the certificate" in caplog.text


def test_keystore_at_the_start_is_not_compared(certificates: Certificates) -> None:
    """
    Stored options replace those of the file.
    """
    security, texts = started(certificates)
    other = certificates.issue("other", "example.org", common_name="other")

    security.configure({**texts, LOCATION: str(other)})

    assert "CN=other" in subject(security)


@pytest.mark.parametrize("year", [1999, 2026, 2049, 2050, 2131])
@pytest.mark.parametrize("names", [(), ("localhost", HOST, "::1", "*.example.org", "a@b.org")])
def test_certificate_fields_agree_with_a_library(
    certificates: Certificates, year: int, names: tuple[str, ...]
) -> None:
    ends = datetime(year, 12, 31, 23, 59, 58, tzinfo=UTC)
    begins = datetime(1990, 1, 1, tzinfo=UTC)
    path = certificates.issue("read", *names, common_name="x,y", begins=begins, ends=ends)
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    der = certificate.public_bytes(Encoding.DER)

    found = read_certificate(der)

    assert subject_of(der) == found.subject
    assert int(certificate.not_valid_after_utc.timestamp() * 1000) == found.ends_ms
    assert len(names) == len(found.alternative_names)
    if "localhost" in names:
        assert (0x82, b"localhost") in found.alternative_names
        assert (0x87, bytes([127, 0, 0, 1])) in found.alternative_names


@pytest.mark.parametrize("cut", [0, 1, 5, 60, 200])
def test_truncated_certificate_is_refused(certificates: Certificates, cut: int) -> None:
    certificate = x509.load_pem_x509_certificate(certificates.broker.read_bytes())
    der = certificate.public_bytes(Encoding.DER)

    with pytest.raises(ValueError, match="malformed"):
        read_certificate(der[:cut])
