"""
A broker that is controlled over HTTP, and a client of its control.
"""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import tempfile
from typing import Any, NamedTuple

from tests.support.broker_process import LONGEST_LIFE
from tests.support.undisturbed import undisturbed

JSON = {"Content-Type": "application/json"}
PATIENCE = 60.0
_BOUNDED = (
    "import signal, sys; signal.alarm(int(sys.argv.pop(1)));"
    " from barnabas.server.cli import main; sys.exit(main(sys.argv[1:]))"
)


class Reply(NamedTuple):
    status: int
    content: Any


class Control:
    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port

    def ask(
        self, method: str, path: str, body: object = None, *, headers: dict[str, str] | None = None
    ) -> Reply:
        """
        Send a request. Bytes are sent as they are, other bodies as JSON.
        """
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        encoded = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, encoded, JSON if headers is None else headers)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        is_json = response.headers.get_content_type() == "application/json"
        return Reply(response.status, json.loads(content) if is_json else None)

    def get(self, path: str) -> Any:
        status, content = self.ask("GET", path)
        assert 200 == status, content
        return content

    def post(self, path: str, **fields: object) -> Any:
        status, content = self.ask("POST", path, fields)
        assert status in (200, 201, 204), content
        return content

    def error(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        status, content = self.ask(method, path, body)
        assert ["error"] == list(content or {}), content
        return status, content["error"]


class ControlledBroker:
    """
    ``barnabas serve --test-control`` on free ports, until ``close``.
    """

    def __init__(self, *arguments: str, address: str = "0") -> None:
        # A pipe that nobody reads would stop the broker when it is full.
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed by close
        command = [sys.executable, "-c", _BOUNDED, str(LONGEST_LIFE), "serve"]
        with undisturbed():
            self._process = subprocess.Popen(
                [*command, "--test-control", address, *_LISTENERS, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
            )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        if not port:
            self._process.communicate(timeout=PATIENCE)
            log = self._log_text()
            self.close()
            raise AssertionError(log)
        self.control = Control(host.strip("[]"), int(port))

    @property
    def bootstrap(self) -> str:
        return str(self.control.get("/v1/broker")["bootstrap_servers"])

    @property
    def port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        self._process.send_signal(number)
        self._process.communicate(timeout=PATIENCE)
        return self._process.returncode, self._log_text()

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
        self._log.close()

    def _log_text(self) -> str:
        self._log.seek(0)
        return self._log.read()


_LISTENERS = ("--set", "listeners=PLAINTEXT://127.0.0.1:0")
