from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from barnabas.server.http.page.assets import Assets
from tests.support.http_client import Answer, get
from tests.support.server import TestBroker

HTTP = {"barnabas_http_listener": "0"}

pytestmark = pytest.mark.broker(**HTTP)
STATIC = Path(str(files("barnabas.server.http.page"))) / "static"
BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"
_REFERENCES = (
    re.compile(r'(?:src|href)="(page/[^"]+)"'),
    re.compile(r'(?:from|import\()\s*"(\.[^"]+)"'),
)


async def ask(broker: TestBroker, path: str, **headers: str) -> Answer:
    return await get(broker.http_port, path, **headers)


async def test_browser_gets_the_page_and_other_clients_the_list_of_paths(
    broker: TestBroker,
) -> None:
    page = await ask(broker, "/", accept=BROWSER)
    listed = await ask(broker, "/", accept="*/*")

    assert "text/html; charset=utf-8" == page.headers["content-type"]
    assert page.text.startswith("<!doctype html>")
    assert "/healthz" in [each["path"] for each in listed.json]


async def test_content_security_policy_forbids_external_and_inline_code(broker: TestBroker) -> None:
    page = await ask(broker, "/", accept=BROWSER)

    policy = page.headers["content-security-policy"]
    assert "default-src 'self'; " in policy
    assert "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert "nosniff" == page.headers["x-content-type-options"]
    assert "no-referrer" == page.headers["referrer-policy"]


async def test_browser_caches_a_file_until_it_changes(broker: TestBroker) -> None:
    first = await ask(broker, "/page/app/main.js")
    again = await ask(broker, "/page/app/main.js", if_none_match=first.headers["etag"])
    other = await ask(broker, "/page/app/main.js", if_none_match='"other"')

    assert (200, "no-cache") == (first.status, first.headers["cache-control"])
    assert "text/javascript; charset=utf-8" == first.headers["content-type"]
    assert (304, b"") == (again.status, again.body)
    assert (200, first.body) == (other.status, other.body)


@pytest.mark.parametrize(
    "path",
    [
        "/page/",
        "/page/app",
        "/page/absent.js",
        "/page/../assets.py",
        "/page/%2e%2e/assets.py",
        "/page//etc/passwd",
        "/page/app/..%2fmain.js",
        "/page/app\\main.js",
    ],
)
async def test_only_the_files_of_the_page_are_served(broker: TestBroker, path: str) -> None:
    answer = await ask(broker, path)

    assert 404 == answer.status
    assert "no-store" == answer.headers["cache-control"]


def test_every_referenced_file_exists() -> None:
    names = set(Assets().names)

    for name, target in _references():
        assert target in names, f"{name} refers to {target}"
    assert {"index.html", "favicon.svg"} <= names


def _references() -> Iterator[tuple[str, str]]:
    for path in STATIC.rglob("*"):
        if path.suffix not in (".html", ".js"):
            continue
        for pattern in _REFERENCES:
            for found in pattern.findall(path.read_text()):
                base = STATIC if found.startswith("page/") else path.parent
                target = (base / found.removeprefix("page/")).resolve()
                yield path.name, target.relative_to(STATIC.resolve()).as_posix()


def test_page_code_never_inserts_markup_or_names_another_host() -> None:
    """
    The Content-Security-Policy forbids it as well; this test names the place.
    """
    unsafe = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|Function\("
    )
    elsewhere = re.compile(r"(?:https?:)?//(?!www\.w3\.org/2000/svg)[a-z0-9-]+\.[a-z]")
    for path in STATIC.rglob("*.*"):
        text = path.read_text()
        assert unsafe.search(text) is None, path.name
        assert elsewhere.search(text) is None, path.name
