"""
The modules that a broker loads at its start, which take most of its time.
"""

from __future__ import annotations

import sys

import pytest

from tests.support.broker_process import Barnabas

SAYS_WHAT_IT_LOADED = """
import atexit, sys
from barnabas.server.cli import main
atexit.register(lambda: print(*sys.modules))
main()
"""
HANDLERS = "barnabas.server.handlers"
MESSAGES = "barnabas.protocol.messages"
MOST_OWN = 261


class Watched(Barnabas):
    """
    Prints the loaded modules when it ends.
    """

    def command(self) -> list[str]:
        serve = super().command()
        return [sys.executable, "-c", SAYS_WHAT_IT_LOADED, *serve[serve.index("serve") :]]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """
    The modules that a broker has loaded after a request for its versions.
    """
    with Watched(tmp_path_factory.mktemp("broker")) as broker:
        assert 0 == broker.stop()
    return set(broker.log_text().splitlines()[-1].split())


def test_handlers_are_imported_on_first_use(loaded: set[str]) -> None:
    """
    Most messages are imported with them: a broker lists all APIs and usually serves a few.
    """
    handlers = {name for name in loaded if name.startswith(f"{HANDLERS}.")}

    assert {f"{HANDLERS}.api_versions"} == handlers
    assert f"{MESSAGES}.produce" not in loaded
    assert f"{MESSAGES}.metadata" not in loaded


@pytest.mark.parametrize(
    "module",
    [
        "barnabas.pipeline",
        "barnabas.server.config.reference",
        "barnabas.server.dynamic_config.admin",
        "barnabas.server.groups.coordinator",
        "barnabas.server.transactions.coordinator",
        "barnabas.coordination.topics.creation",
        "barnabas.storage.cleaner.cleaner",
        "barnabas.storage.explain",
        "cramjam",
        "encodings.idna",  # For names of hosts beyond ASCII.
        "email",  # That, and the next one, to look up the version of a package.
        "importlib.metadata",
        "barnabas.server.http",
        "prometheus_client",
        "starlette",
        "uvicorn",
        "lz4",
        "_ssl",  # OpenSSL; asyncio and uvloop would load it.
        "_hashlib",  # OpenSSL as well: 3 MiB.
        "shutil",  # To read a command line it is not needed; it brings archivers with it.
        "tempfile",
    ],
)
def test_start_does_not_import_rarely_needed_modules(loaded: set[str], module: str) -> None:
    assert module not in loaded


def test_start_imports_few_modules(loaded: set[str]) -> None:
    """
    A few more are fine; twenty at once point to an import that could wait.
    """
    own = {name for name in loaded if name.startswith("barnabas.") and "__mypyc" not in name}

    assert len(own) <= MOST_OWN
