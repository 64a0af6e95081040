"""
The keys of an issuer, at a URL that redirects.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from joserfc.jwk import ECKey, KeySet

from barnabas.server.security.sasl.signed_tokens import JsonWebKeys
from barnabas.storage.config.option_values import ConfigError
from barnabas.testing.manual_clock import ManualClock
from tests.support.certificates import Certificates

KEYS = json.dumps(KeySet([ECKey.generate_key("P-256")]).as_dict(private=False)).encode()


@contextmanager
def serving(target: str | None, certificates: Certificates | None = None) -> Iterator[str]:
    """
    The URL of a server that has keys, or redirects to a *target*.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if target is None else 302)
            if target is not None:
                self.send_header("Location", target)
            self.end_headers()
            if target is None:
                self.wfile.write(KEYS)

        def log_message(self, *_: object) -> None:
            """
            Stay silent.
            """

    server = HTTPServer(("127.0.0.1", 0), Handler)
    scheme = "http"
    if certificates is not None:
        scheme = "https"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.broker)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"{scheme}://127.0.0.1:{server.server_port}/keys"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Certificates:
    made = Certificates(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.ca))
    return made


def fetch(url: str) -> int:
    """
    The number of keys.
    """
    return len(JsonWebKeys(url, 3600, ManualClock()).current.keys)


def test_keys_over_https_are_not_taken_from_http(certificates: Certificates) -> None:
    with serving(None) as plain, serving(plain, certificates) as secured:
        assert 1 == fetch(plain)
        with pytest.raises(ConfigError, match="it redirects from https to http://127"):
            fetch(secured)


def test_redirects_that_stay_or_become_https_are_followed(certificates: Certificates) -> None:
    with (
        serving(None, certificates) as secured,
        serving(secured, certificates) as first,
        serving(first) as plain,
    ):
        assert 1 == fetch(first)
        assert 1 == fetch(plain)


@pytest.mark.parametrize("target", ["ftp://127.0.0.1/keys", "file:///etc/passwd"])
def test_redirects_to_other_schemes_are_not_followed(target: str) -> None:
    with serving(target) as plain, pytest.raises(ConfigError, match=r"(?i)redirect"):
        fetch(plain)
