"""
An S3 server on the loopback interface: moto's, which keeps everything in memory.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

BUCKET: Final = "lake"
KEY: Final = "barnabas"
SECRET: Final = "not-a-secret"


class Request(NamedTuple):
    """
    One that was answered.
    """

    method: str
    path: str
    query: str


class S3Server:
    """
    The server, and what it was asked.
    """

    def __init__(self, application: WSGIApplication, port: int) -> None:
        self._application = application
        self.endpoint = f"http://127.0.0.1:{port}"
        self.requests: list[Request] = []
        self.before: Callable[[int], None] = lambda _: None
        """Called with the number of a request, from 1 on, before the server does it."""
        self.after: Callable[[int], None] = lambda _: None
        """Called when the server has done it, and before the client is told."""
        self._lock = threading.Lock()

    @property
    def storage(self) -> Mapping[str, str]:
        """
        How it is reached, by the names of the environment.
        """
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
        }

    def url(self, path: str, scheme: str = "s3") -> str:
        return f"{scheme}://{BUCKET}/{path}"

    def put_directory(self, directory: Path, path: str) -> None:
        """
        Copy the files of a local directory.
        """
        with self.client() as client:
            for file in directory.rglob("*"):
                if file.is_file():
                    key = f"{path}/{file.relative_to(directory)}"
                    client.put_object(Bucket=BUCKET, Key=key, Body=file.read_bytes())

    def keys(self, prefix: str) -> list[str]:
        with self.client() as client:
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
            return [each["Key"] for page in pages for each in page.get("Contents", ())]

    @contextmanager
    def client(self) -> Iterator[Any]:
        """
        One whose requests are not counted.
        """
        import boto3  # noqa: PLC0415  # it takes a second

        counted, self.requests = self.requests, []
        before, after = self.before, self.after
        self.before = self.after = lambda _: None
        try:
            yield boto3.client(
                "s3",
                endpoint_url=self.endpoint,
                aws_access_key_id=KEY,
                aws_secret_access_key=SECRET,
                region_name="us-east-1",
            )
        finally:
            self.requests, self.before, self.after = counted, before, after

    def __call__(
        self, environment: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        path, query = environment["PATH_INFO"], environment.get("QUERY_STRING", "")
        with self._lock:
            self.requests.append(Request(environment["REQUEST_METHOD"], path, query))
            number = len(self.requests)
        self.before(number)
        answer = list(self._application(environment, start_response))
        self.after(number)
        return answer


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """
    A server with an empty bucket.
    """
    from moto.moto_server.werkzeug_app import (  # noqa: PLC0415  # slow
        DomainDispatcherApplication,
        create_backend_app,
    )
    from werkzeug.serving import make_server  # noqa: PLC0415  # comes with it

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    served: list[S3Server] = []

    def application(environment: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        return served[0](environment, start_response)

    server = make_server("127.0.0.1", 0, application, threaded=True)
    dispatcher = DomainDispatcherApplication(create_backend_app)
    served.append(S3Server(dispatcher, server.port))
    thread = threading.Thread(target=server.serve_forever, name="s3", daemon=True)
    thread.start()
    try:
        with served[0].client() as client:
            client.create_bucket(Bucket=BUCKET)
        yield served[0]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        _forget()


def _forget() -> None:
    from moto.s3.models import s3_backends  # noqa: PLC0415  # slow

    for account in s3_backends.values():
        for backend in account.values():
            backend.reset()
