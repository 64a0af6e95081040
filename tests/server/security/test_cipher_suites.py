from __future__ import annotations

import ssl

import pytest

from barnabas.server.security.tls.cipher_suites import openssl_names
from barnabas.storage.config.option_values import InvalidValue

NEW, OLD = "TLS_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"


@pytest.mark.parametrize(
    ("suites", "names"),
    [
        ([OLD], (["ECDHE-RSA-AES256-GCM-SHA384"], False)),
        ([NEW, OLD], (["ECDHE-RSA-AES256-GCM-SHA384"], True)),
        ([NEW], ([], True)),
    ],
)
def test_suites_of_tls_1_3_may_stand_before_others(
    suites: list[str], names: tuple[list[str], bool]
) -> None:
    assert names == openssl_names(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), suites)


def test_a_suite_that_openssl_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidValue, match="OpenSSL has no such cipher suite"):
        openssl_names(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), [NEW, "TLS_NONE"])
