"""
A small schema registry over HTTP, for clients that are in several processes.

It has what confluent-kafka's client uses, in the words of the `API reference`_ of Confluent's
registry. No schema is compared with the ones before it: all are compatible.

.. _API reference: https://docs.confluent.io/platform/current/schema-registry/develop/api.html
"""

from __future__ import annotations

import json
import threading
import uuid
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

_SCHEMA_NOT_FOUND = 40403
_SUBJECT_NOT_FOUND = 40401
_VERSION_NOT_FOUND = 40402


class NotFound(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Schemas:
    bodies: list[dict[str, Any]] = field(default_factory=list)
    """By id, which begins with 1."""
    subjects: dict[str, list[int]] = field(default_factory=dict)
    """The ids of all versions."""

    def register(self, subject: str, body: dict[str, Any]) -> dict[str, Any]:
        wanted = self.wanted(body)
        if wanted not in self.bodies:
            self.bodies.append(wanted)
        schema_id = self.bodies.index(wanted) + 1
        versions = self.subjects.setdefault(subject, [])
        if schema_id not in versions:
            versions.append(schema_id)
        return self.registered(subject, versions.index(schema_id) + 1)

    @staticmethod
    def wanted(body: dict[str, Any]) -> dict[str, Any]:
        return {
            name: body[name] for name in ("schema", "schemaType", "references") if body.get(name)
        }

    def lookup(self, subject: str, body: dict[str, Any]) -> dict[str, Any]:
        wanted = self.wanted(body)
        for version, schema_id in enumerate(self.versions(subject), 1):
            if self.bodies[schema_id - 1] == wanted:
                return self.registered(subject, version)
        raise NotFound(_SCHEMA_NOT_FOUND, "Schema not found")

    def versions(self, subject: str) -> list[int]:
        if subject not in self.subjects:
            raise NotFound(_SUBJECT_NOT_FOUND, f"Subject '{subject}' not found.")
        return self.subjects[subject]

    def registered(self, subject: str, version: int | str) -> dict[str, Any]:
        ids = self.versions(subject)
        number = len(ids) if version == "latest" else int(version)
        if not 1 <= number <= len(ids):
            raise NotFound(_VERSION_NOT_FOUND, f"Version {version} not found.")
        return {"subject": subject, "version": number, **self.by_id(ids[number - 1])}

    def by_id(self, schema_id: int) -> dict[str, Any]:
        if not 1 <= schema_id <= len(self.bodies):
            raise NotFound(_SCHEMA_NOT_FOUND, "Schema not found")
        return {"id": schema_id, "guid": guid_of(schema_id), **self.bodies[schema_id - 1]}

    def by_guid(self, guid: str) -> dict[str, Any]:
        for schema_id in range(1, len(self.bodies) + 1):
            if guid_of(schema_id) == guid:
                return self.by_id(schema_id)
        raise NotFound(_SCHEMA_NOT_FOUND, "Schema not found")


def guid_of(schema_id: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(schema_id)))


class SchemaRegistry:
    """
    A registry that answers on a port of the loopback interface while it is open.
    """

    def __init__(self) -> None:
        self.schemas = Schemas()
        self.asked: Counter[str] = Counter()
        """How often each path was asked for."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> SchemaRegistry:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(  # noqa: PLR0911  # a case each
        self, method: str, path: str, body: dict[str, Any]
    ) -> Any:
        """
        What the registry says to a request.

        Raises:
            NotFound: there is nothing of that name.
        """
        self.asked[path] += 1
        match [method, *(unquote(part) for part in path.strip("/").split("/"))]:
            case ["GET", "schemas", "ids", schema_id]:
                return self.schemas.by_id(int(schema_id))
            case ["GET", "schemas", "guids", guid]:
                return self.schemas.by_guid(guid)
            case ["GET", "subjects", subject, "versions", version]:
                return self.schemas.registered(subject, version)
            case ["GET", "subjects", subject, "versions"]:
                return list(range(1, len(self.schemas.versions(subject)) + 1))
            case ["POST", "subjects", subject, "versions"]:
                return self.schemas.register(subject, body)
            case ["POST", "subjects", subject]:
                return self.schemas.lookup(subject, body)
            case ["GET", "config", *_]:
                return {"compatibilityLevel": "NONE"}
        raise NotFound(404, f"HTTP 404 Not Found: {path}")


def _handler(registry: SchemaRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size) or b"{}")
            try:
                status, answer = 200, registry.answer(self.command, urlsplit(self.path).path, body)
            except NotFound as error:
                status, answer = 404, {"error_code": error.code, "message": str(error)}
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
