"""
A real Chromium that looks at the page of a running broker.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.interop.page.world import World, populate, running_world
from tests.support.broker_process import wait_for
from tests.support.commands import run
from tests.support.maven import PrerequisiteMissing, alone, cache

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

AXE: Final = "axe-core@4.14.1"
PATIENCE_MS: Final = 20_000


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running_world(tmp_path_factory.mktemp("world")) as made:
        members = populate(made.broker)
        yield made
        for member in members:
            member.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """
    Chromium as Debian has it; it ends with the file, since it takes the event loop of the thread.
    """
    if find_spec("playwright") is None:
        raise PrerequisiteMissing("playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        raise PrerequisiteMissing("no chromium on the path")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  # may not be there

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@dataclass
class Viewer:
    page: Page
    url: str
    troubles: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, context: BrowserContext, url: str) -> Viewer:
        """
        A new window, which is watched.
        """
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        viewer = cls(page, url)

        def hear(message: Any) -> None:
            if message.type in ("error", "warning"):
                viewer.troubles.append(message.text)

        def see(request: Any) -> None:
            if not request.url.startswith((url, "data:")):
                viewer.strangers.append(request.url)

        page.on("console", hear)
        page.on("pageerror", lambda error: viewer.troubles.append(str(error)))
        page.on("request", see)
        return viewer

    def go(self, address: str) -> Page:
        """
        Show the view at *address*, behind the ``#``, from scratch, and wait until it is there.
        """
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}#{address}")
        return self.ready()

    def ready(self) -> Page:
        """
        Wait until the view is there.
        """
        self.page.wait_for_selector("main[data-view]:not([aria-busy])")
        return self.page

    def until(self, script: str, argument: object = None) -> None:
        """
        Wait until *script* is true in the page, which lets nothing be evaluated by itself.
        """
        wait_for(lambda: bool(self.page.evaluate(script, argument)), script, PATIENCE_MS / 1000)

    def check(self) -> None:
        """
        Raises:
            AssertionError: the page has complained, or has asked another host.
        """
        assert [] == self.troubles
        assert [] == self.strangers


@contextmanager
def window(browser: Browser, url: str, **options: Any) -> Iterator[Viewer]:
    """
    A window in which nothing may go wrong, in a context with these *options*.
    """
    size = {"width": 1280, "height": 860}
    with browser.new_context(**{"viewport": size, **options}) as context:
        found = Viewer.open(context, url)
        yield found
        found.check()


@pytest.fixture
def viewer(browser: Browser, world: World) -> Iterator[Viewer]:
    with window(browser, world.url, color_scheme="light") as found:
        yield found


@pytest.fixture(scope="session")
def axe() -> str:
    """
    The program of axe-core, which finds what hinders people with disabilities.
    """
    folder = cache("axe")
    program = folder / AXE / "axe.min.js"
    with alone(folder):
        if not program.exists():
            _fetch(program)
    return program.read_text()


def _fetch(program: Path) -> None:
    if shutil.which("npm") is None:
        raise PrerequisiteMissing("no npm on the path to fetch axe-core")
    program.parent.mkdir(parents=True, exist_ok=True)
    done = run("npm", "pack", "--silent", AXE, cwd=program.parent)
    if done.returncode:
        raise PrerequisiteMissing(f"npm pack {AXE}: {done.stderr.strip()[-200:]}")
    with tarfile.open(program.parent / done.stdout.split()[-1]) as package:
        content = package.extractfile("package/axe.min.js")
        assert content is not None
        program.write_bytes(content.read())
