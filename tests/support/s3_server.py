"""
An S3 server on the loopback interface: moto's, which keeps everything in memory.

It is a process of its own, run as ``python -m tests.support.s3_server``: some clients wait for it
and let no other thread run meanwhile.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.request import Request as HttpRequest
from urllib.request import urlopen
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from tests.support.compiled import ROOT

BUCKET: Final = "lake"
KEY: Final = "barnabas"
SECRET: Final = "not-a-secret"
_CONTROL: Final = "/-/control"
_PATIENCE: Final = 60


class Request(NamedTuple):
    """
    One that a client has sent.
    """

    method: str
    path: str
    query: str


class S3Server:
    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"

    @property
    def storage(self) -> Mapping[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
        }

    def url(self, path: str, scheme: str = "s3") -> str:
        return f"{scheme}://{BUCKET}/{path}"

    def count(self, *, kill: int = 0, step: int = 0, done: bool = True) -> None:
        """
        Forget the requests, and count from 1.

        Args:
            kill: the process to kill at the request *step*.
            done: whether the server carries out that request.
        """
        self._control({"kill": kill, "step": step, "done": done})

    @property
    def requests(self) -> list[Request]:
        return [Request(*each) for each in self._control(None)]

    def put_directory(self, directory: Path, path: str) -> None:
        for file in directory.rglob("*"):
            if file.is_file():
                key = f"{path}/{file.relative_to(directory)}"
                self.client.put_object(Bucket=BUCKET, Key=key, Body=file.read_bytes())

    def keys(self, prefix: str) -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [each["Key"] for page in pages for each in page.get("Contents", ())]

    @cached_property
    def client(self) -> Any:
        import boto3  # noqa: PLC0415  # it takes a second

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )

    def _control(self, asked: Any) -> Any:
        data = json.dumps(asked).encode()
        with urlopen(HttpRequest(self.endpoint + _CONTROL, data), timeout=_PATIENCE) as answer:
            return json.load(answer)


@contextmanager
def s3_server() -> Iterator[S3Server]:
    command = [sys.executable, "-m", "tests.support.s3_server"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            server = S3Server(int(process.stdout.readline()))
            server.client.create_bucket(Bucket=BUCKET)
            yield server
        finally:
            process.kill()


# In the process of the server.


class _Counting:
    """
    Moto's application, which records the requests.
    """

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application
        self._requests: list[Request] = []
        self._victim = {"kill": 0, "step": 0, "done": True}
        self._lock = threading.Lock()

    def __call__(
        self, environment: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        path, query = environment["PATH_INFO"], environment.get("QUERY_STRING", "")
        if path == _CONTROL:
            length = int(environment["CONTENT_LENGTH"])
            answer = self._controlled(json.loads(environment["wsgi.input"].read(length)))
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(answer).encode()]
        with self._lock:
            self._requests.append(Request(environment["REQUEST_METHOD"], path, query))
            dies = len(self._requests) == self._victim["step"]
        if dies and not self._victim["done"]:
            os.kill(self._victim["kill"], signal.SIGKILL)
            start_response("503 Service Unavailable", [])
            return []
        body = list(self._application(environment, start_response))
        if dies:
            os.kill(self._victim["kill"], signal.SIGKILL)
        return body

    def _controlled(self, asked: Any) -> Any:
        with self._lock:
            if asked is not None:
                self._requests.clear()
                self._victim = asked
            return list(self._requests)


def main() -> None:
    from moto.moto_server.werkzeug_app import (  # noqa: PLC0415  # slow
        DomainDispatcherApplication,
        create_backend_app,
    )
    from werkzeug.serving import make_server  # noqa: PLC0415  # comes with it

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = _Counting(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    print(server.port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
