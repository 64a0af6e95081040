"""
The sliders: their numbers are those of ``barnabas explain``, of the same files and the same time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

import pytest

from tests.interop.page.conftest import Viewer, window
from tests.interop.page.world import DAY, HOUR, Sender, World, create, running_world
from tests.support.explaining import Explainer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.prove

TOPICS: Final = 10
PARTITIONS: Final = 10
SEED: Final = 24
OPTIONS: Final = {
    "log_retention_check_interval_ms": str(HOUR),
    "log_index_size_max_bytes": "16384",
}
ROWS: Final = """
[...document.querySelectorAll("table[aria-label=Segments] tbody tr")].map((row) => {
  const cells = [...row.children];
  const time = row.querySelector("time");
  const missing = cells[6].querySelector("span[title]");
  return {
    base: Number(cells[0].textContent.replaceAll(",", "")),
    size: Number(cells[1].querySelector("span").title.replace(/\\D/g, "")),
    deleted_ms: time ? Date.parse(time.dateTime) : null,
    says: cells[6].textContent,
    missing: missing ? Number(missing.title.replace(/\\D/g, "")) : null,
    rule: cells[7].textContent,
  };
})
"""


class Tried(NamedTuple):
    topic: str
    partition: int
    settings: dict[str, str]


class RandomWorld(NamedTuple):
    """
    A broker with random partitions, and one moment for all questions.
    """

    world: World
    explainer: Explainer
    now_ms: int
    tried: list[Tried]


@pytest.fixture(scope="module")
def random_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RandomWorld]:
    """
    100 partitions of random sizes, ages, segments and settings, and random settings to try.
    """
    chance = random.Random(SEED)
    now_ms = int(time.time() * 1000)
    with running_world(tmp_path_factory.mktemp("random")) as world:
        tried = []
        for number in range(TOPICS):
            topic = f"random-{number}"
            create(world.broker, topic, PARTITIONS, **_configs(chance))
            _fill(world, topic, chance, now_ms)
            tried += [Tried(topic, each, _settings(chance)) for each in range(PARTITIONS)]
        explainer = Explainer(world.broker.data, now_ms=now_ms, **OPTIONS)  # type: ignore[arg-type]
        yield RandomWorld(world, explainer, now_ms, tried)


def _configs(chance: random.Random) -> dict[str, str]:
    return {
        "internal_segment_bytes": str(chance.choice([5000, 9000, 20_000])),
        "segment_ms": str(chance.choice([HOUR, DAY, 7 * DAY])),
        "retention_ms": str(chance.choice([-1, HOUR, DAY, 7 * DAY])),
        "retention_bytes": str(chance.choice([-1, 9000, 30_000])),
        "cleanup_policy": chance.choice(
            ["delete", "delete", "delete", "compact", "compact,delete"]
        ),
        "min_cleanable_dirty_ratio": "1.0",
    }


def _fill(world: World, topic: str, chance: random.Random, now_ms: int) -> None:
    sender = Sender(world.broker, batch_num_messages=chance.choice([1, 3, 10]))
    for partition in range(PARTITIONS):
        age = chance.choice([HOUR, DAY, 20 * DAY])
        count = chance.randrange(200)
        for number in range(count):
            # Some come too early or too late: retention goes by the latest of a segment.
            at = now_ms - age + number * age // max(1, count) + chance.choice([0, 0, 0, -HOUR])
            sender.send(topic, partition, at, "x" * chance.randrange(300), f"k{number % 7}")
    sender.flush()


def _settings(chance: random.Random) -> dict[str, str]:
    choices = {
        "retention.ms": ["-1", "60000", str(HOUR // 2), str(DAY // 2), str(9 * DAY), "123456789"],
        "retention.bytes": ["-1", "0", "1000", "7777", "123456"],
        "internal.segment.bytes": ["5000", "30000", "1048576"],
        "segment.ms": [str(HOUR), str(3 * DAY)],
    }
    names = chance.sample(list(choices), chance.randint(1, 3))
    return {name: chance.choice(choices[name]) for name in names}


def test_what_if_figures_equal_those_of_explain_for_100_random_partitions(
    browser: Browser, random_world: RandomWorld
) -> None:
    changed = 0
    with window(browser, random_world.world.url) as viewer:
        for each in random_world.tried:
            page = _try(viewer, random_world, each, each.settings)
            _check(page, random_world, each, each.settings)
            changed += page.locator(".key.changed").count()

    assert 100 == len(random_world.tried)
    assert changed > 10, "the settings that are tried change too little to be a test"


def _try(viewer: Viewer, random_world: RandomWorld, each: Tried, settings: dict[str, str]) -> Page:
    query = urlencode({"at": random_world.now_ms, **settings})
    # Only the first address loads the page: the others change what is behind the ``#``.
    viewer.page.goto(f"{viewer.url}#/topics/{each.topic}/{each.partition}?{query}")
    return _wait(viewer, each, settings)


def _wait(viewer: Viewer, each: Tried, settings: dict[str, str]) -> Page:
    tried = " ".join(f"{name}={value}" for name, value in _in_order(settings).items())
    viewer.until(
        "([title, tried]) => document.title.startsWith(title)"
        " && document.querySelector('.summary')?.dataset.tried === tried",
        [f"{each.topic}-{each.partition} ", tried],
    )
    return viewer.page


def _in_order(settings: dict[str, str]) -> dict[str, str]:
    names = ("retention.ms", "retention.bytes", "internal.segment.bytes", "segment.ms")
    return {name: settings[name] for name in names if name in settings}


def _check(page: Page, random_world: RandomWorld, each: Tried, settings: dict[str, str]) -> None:
    """
    Compare each row, and the sentence above the sliders.
    """
    given = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    facts = random_world.explainer.facts(f"{each.topic}-{each.partition}", *given)
    segments = facts["segments"]

    rows = page.evaluate(ROWS)

    where = f"{each} {settings}"
    assert [_expected(segment) for segment in segments] == [_seen(row) for row in rows], where
    gone = [segment for segment in segments if segment["departure"]["goes_by"]]
    headline = page.locator(".headline")
    assert str(len(gone)) == headline.get_attribute("data-segments"), where
    assert str(sum(segment["size"] for segment in gone)) == headline.get_attribute("data-bytes")
    said = headline.inner_text()
    if gone:
        assert said.startswith(f"{len(gone)} segment"), where
    else:
        assert said.startswith(("The next check deletes nothing", "Neither age nor size")), where


def _expected(segment: dict[str, Any]) -> tuple[Any, ...]:
    departure = segment["departure"]
    deleted = departure["unreadable"]["earliest_ms"]
    goes_by, missing = departure["goes_by"], departure["bytes_missing"]
    rule = goes_by or ("retention_ms" if deleted is not None else None)
    if rule is None and missing is not None:
        rule = "retention_bytes"
    name = {
        "retention_ms": "retention.ms",
        "retention_bytes": "retention.bytes",
        "log_start_offset": "the log start offset",
        None: "–",  # noqa: RUF001  # as the page has it
    }[rule]
    shown = missing if deleted is None else None
    return segment["base_offset"], segment["size"], deleted, bool(goes_by), shown, name


def _seen(row: dict[str, Any]) -> tuple[Any, ...]:
    next_check = row["says"] == "next check"
    return row["base"], row["size"], row["deleted_ms"], next_check, row["missing"], row["rule"]


def test_slider_and_its_field_apply_their_value(
    browser: Browser, random_world: RandomWorld
) -> None:
    """
    Moved, written into, without a limit, and set back.
    """
    each = random_world.tried[3]
    with window(browser, random_world.world.url) as viewer:
        page = _try(viewer, random_world, each, {})
        slider = page.get_by_role("slider", name="segment.ms")
        field = page.get_by_label("segment.ms, a number with its unit")

        slider.focus()
        page.keyboard.press("PageUp")
        viewer.until("location.hash.includes('segment.ms=')")
        value = page.evaluate("new URLSearchParams(location.hash.split('?')[1]).get('segment.ms')")
        moved = {"segment.ms": value}
        _check(_wait(viewer, each, moved), random_world, each, moved)
        assert slider.get_attribute("aria-valuetext") == field.input_value()

        field.fill("1 d 6 h")
        field.press("Enter")
        written = {"segment.ms": str(30 * HOUR)}
        _check(_wait(viewer, each, written), random_world, each, written)

        field.fill("soon")
        field.press("Enter")
        page.get_by_text("A time looks like").wait_for()
        assert "true" == field.get_attribute("aria-invalid")

        page.get_by_role("button", name="reset segment.ms").click()
        _check(_wait(viewer, each, {}), random_world, each, {})
