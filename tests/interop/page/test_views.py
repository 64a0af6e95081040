"""
The page in a real browser: every view, and what a person does with it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.interop.page.conftest import Viewer, window
from tests.interop.page.world import EVIL, HOUR, World

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

VIEWS: Final = {
    "overview": "/",
    "topic": "/topics/orders",
    "partition": "/topics/orders/2",
    "a compacted partition": "/topics/customers/0",
    "other settings": "/topics/orders/2?retention.ms=172800000&retention.bytes=900000",
    "segment": "/topics/orders/2/segments/0?offset=700&step=2",
    "a segment of transactions": "/topics/payments/0/segments/0?timestamp=1",
    "batch": "/topics/orders/2/batches/700",
    "a batch of a transaction": "/topics/payments/0/batches/0",
    "groups": "/groups",
    "group": "/group?id=analytics",
    "a group with members": "/group?id=dashboard",
    "transactions": "/transactions",
    "new records": "/topics/orders/tail",
    "nothing": "/nothing/at/all",
}
FACTS: Final = {
    "overview": ["orders", "telemetry", "On disk"],
    "topic": ["retention.ms", "set for the topic", "High watermark"],
    "partition": [
        "Timeline",
        "analytics",
        "it was full (segment.bytes)",
        "deleted by the next check",
    ],
    "a compacted partition": ["compacted", "dirty", "Cleaner"],
    "other settings": [
        "changed by what is tried",
        "will be deleted by the next check",
    ],
    "segment": ["Offset index", "Scan", "zstd", "Its life"],
    "a segment of transactions": ["Time index", "marker", "transaction"],
    "batch": ["Codec", "zstd", "customer"],
    "a batch of a transaction": ["It is part of a transaction.", "payment"],
    "groups": ["analytics", "dashboard", "Stable"],
    "group": ["orders-2", "The group has no member now"],
    "a group with members": ["dashboard-0", "telemetry:"],
    "transactions": ["payments-writer", "CompleteCommit"],
    "new records": ["Following", "customer"],
    "nothing": ["Nothing is at this address"],
}


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_shows_its_data(viewer: Viewer, view: str) -> None:
    """
    Without an error in the console, and without a request to another host: the fixture looks.
    """
    page = viewer.go(VIEWS[view])

    for fact in FACTS[view]:
        page.get_by_text(fact).filter(visible=True).first.wait_for()
    assert 0 == page.locator("[role=alert]").count()
    assert 1 == page.locator("h1").count()


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_fits_on_a_phone(viewer: Viewer, view: str) -> None:
    viewer.page.set_viewport_size({"width": 360, "height": 740})

    page = viewer.go(VIEWS[view])
    page.wait_for_timeout(200)

    assert 360 >= page.evaluate("document.documentElement.scrollWidth")


@pytest.fixture(params=["light", "dark"])
def in_theme(request: pytest.FixtureRequest, browser: Browser, world: World) -> Iterator[Viewer]:
    """
    A window of a system in that theme, where nothing moves.
    """
    with window(browser, world.url, color_scheme=request.param, reduced_motion="reduce") as viewer:
        yield viewer


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_no_serious_violation(in_theme: Viewer, axe: str, view: str) -> None:
    page = in_theme.go(VIEWS[view])
    page.wait_for_timeout(300)

    page.evaluate(axe)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")

    serious = [
        (each["id"], each["help"], [node["html"][:200] for node in each["nodes"][:3]])
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert [] == serious
    assert 0 == page.evaluate("document.getAnimations().length")


def test_theme_follows_the_system_until_it_is_chosen(browser: Browser, world: World) -> None:
    with window(browser, world.url, color_scheme="dark") as viewer:
        page = viewer.go("/")
        at_first = _brightness(page)
        page.get_by_role("button", name="Change to the light theme").click()
        chosen = _brightness(page)
        page.reload()
        later = _brightness(viewer.ready())

    assert at_first < 60
    assert chosen > 200
    assert chosen == later


def _brightness(page: Page) -> int:
    script = "getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)"
    return int(max(page.evaluate(script)[:3]))


def test_page_can_be_used_with_the_keyboard_alone(viewer: Viewer) -> None:
    """
    From the topics to a record, with Tab, Enter and the arrow keys alone, and back.
    """
    page = viewer.go("/")
    keys = page.keyboard

    keys.press("Tab")
    assert "Skip to the content" == _focused(page)
    keys.press("Enter")
    _tab_to(page, "Filter topics by name")
    keys.type("order")
    _tab_to(page, "orders")
    keys.press("Enter")
    page.wait_for_selector("main[data-view=topic]:not([aria-busy])")
    _tab_to(page, "3")
    keys.press("Enter")
    page.wait_for_selector("main[data-view=partition]:not([aria-busy])")

    newest = page.locator("[role=option]").last.get_attribute("aria-label") or ""
    _tab_to(page, newest)
    keys.press("ArrowLeft")
    keys.press("ArrowLeft")
    third = page.locator("[role=option][aria-selected=true]").get_attribute("aria-label") or ""
    assert third == page.locator("[role=option]").nth(-3).get_attribute("aria-label")
    page.get_by_role("heading", name=third.partition(",0")[0].split(", ")[0]).wait_for()
    keys.press("+")
    assert third == _focused(page)
    keys.press("-")
    assert page.get_by_role("button", name="All").is_disabled()
    keys.press("+")
    keys.press("Escape")
    keys.press("Home")
    assert _focused(page).startswith("Segment 0, ")
    keys.press("Enter")
    page.wait_for_selector("main[data-view=segment]:not([aria-busy])")

    _tab_to(page, "The offset, or the time")
    keys.type("150")
    keys.press("Enter")
    page.get_by_role("button", name="Next step").wait_for()
    _tab_to(page, "Next step")
    keys.press("Enter")
    keys.press("Enter")
    assert "Batch" in page.locator("[aria-current=step]").inner_text()
    _tab_to(page, "Open the batch")
    keys.press("Enter")
    page.wait_for_selector("main[data-view=batch]:not([aria-busy])")
    assert page.locator("article.record").count() > 1

    page.go_back()
    page.wait_for_selector("main[data-view=segment]:not([aria-busy])")
    assert "150" == page.get_by_label("The offset, or the time").input_value()
    page.go_back()
    page.wait_for_selector("main[data-view=partition]:not([aria-busy])")


def _focused(page: Page) -> str:
    return str(
        page.evaluate(
            "(each => each.getAttribute('aria-label') ?? each.textContent)(document.activeElement)"
        )
    )


def _tab_to(page: Page, name: str) -> None:
    for _ in range(80):
        page.keyboard.press("Tab")
        if _focused(page) == name:
            return
    raise AssertionError(f"80 times Tab do not lead to {name}; the last is {_focused(page)}")


HOSTILE: Final = (
    "/topics/hostile/tail",
    "/topics/hostile/0",
    "/topics/hostile/0/segments/0",
    "/topics/hostile/0/batches/0",
    "/groups",
    "/group?id=group%20" + "%3Cscript%3Edocument.title%3D'evil'%3C%2Fscript%3E",
    "/transactions",
    "/topics/%3Cscript%3Edocument.title%3D'evil'%3C%2Fscript%3E",
    "/topics/hostile/0?retention.ms=%3Cimg%20src%3Dx%3E",
    "/topics/hostile/%2e%2e%2f%2e%2e/segments/-1",
    "/%zz",
)


@pytest.mark.parametrize("address", HOSTILE)
def test_text_is_never_interpreted_as_script_or_markup(
    browser: Browser, world: World, address: str
) -> None:
    """
    Not even where there is nothing to show: then it is said in a sentence.
    """
    with browser.new_context() as context:
        viewer = Viewer.open(context, world.url)
        page = viewer.go(address)
        page.wait_for_timeout(300)

        assert "evil" != page.title()
        assert 0 == page.locator("main script, main img, main iframe").count()
        assert [] == viewer.strangers
        # A request of the page may fail, and the browser says so; nothing else may go wrong.
        assert [] == [each for each in viewer.troubles if "Failed to load resource" not in each]


def test_hostile_records_are_shown_as_text(viewer: Viewer) -> None:
    page = viewer.go("/topics/hostile/0/batches/0")

    shown = page.locator("pre.value").all_inner_texts()
    assert EVIL in shown
    assert any("0001fe" in each for each in shown)


def test_failure_is_shown_as_a_sentence(browser: Browser, world: World) -> None:
    with browser.new_context() as context:
        viewer = Viewer.open(context, world.url)
        page = viewer.go("/topics/absent")
        said = page.locator("[role=alert]").inner_text()

    assert "absent" in said
    assert said.endswith(".")


def test_new_records_are_followed(viewer: Viewer, world: World) -> None:
    """
    They come by themselves, are searched, and are held back by a pause.
    """
    from tests.interop.page.world import Sender, create  # noqa: PLC0415  # beside what it is for

    create(world.broker, "followed", 2)
    page = viewer.go("/topics/followed/tail")
    page.get_by_text("No record has come yet").wait_for()
    sender = Sender(world.broker)
    for number in range(20):
        sender.send("followed", number % 2, 1_795_000_000_000 + number, f'{{"n": {number}}}', "k")
    sender.flush()
    page.get_by_text('"n": 19').wait_for()
    page.get_by_label("Only records with this text").fill('"n": 7')
    viewer.until("document.querySelectorAll('article.record').length === 1")
    page.get_by_role("button", name="Pause").click()
    page.get_by_label("Only records with this text").fill("")

    assert 20 == page.locator("article.record").count()
    sender.send("followed", 0, 1_795_000_000_020, '{"n": 20}', "k")
    sender.flush()
    page.wait_for_timeout(1000)
    assert 20 == page.locator("article.record").count()
    page.get_by_role("button", name="Go on").click()
    page.get_by_text('"n": 20').wait_for()


def test_forecast_is_shown(viewer: Viewer) -> None:
    """
    In the words of the broker: what a group will not read in time.
    """
    words = "At its pace this group reaches offset 9,000 in 5 hours; its segment is deleted before."
    loss = {"records": 1200, "bytes": 2_254_857_830, "first_offset": 9000, "begins_ms": 1}
    loss["reaches_ms"] = int(time.time() * 1000) + 5 * HOUR + 60_000
    forecast = {"verdict": "loss", "loss": loss, "words": [words], "records_per_second": 12.5}

    def changed(route: Route) -> None:
        answer: dict[str, Any] = route.fetch().json()
        answer["offsets"][0]["forecast"] = forecast
        route.fulfill(body=json.dumps(answer), content_type="application/json")

    viewer.page.route("**/api/v1/group?*", changed)
    page = viewer.go("/group?id=analytics")

    page.get_by_text(words).wait_for()
    page.get_by_text("loses 2.1 GiB").wait_for()
    assert "by the next check" in page.locator(".race").inner_text()
    assert "in 5 h" in page.locator(".race").inner_text()
