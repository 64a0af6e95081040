"""
The pictures of ``docs/web.md``: ``pytest tests/interop/page/test_pictures.py --page-images
docs/images`` makes them again. Fonts are those of the machine: Debian's fonts-inter and
fonts-jetbrains-mono are good ones.
"""

from __future__ import annotations

import io
import json
import random
import re
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import pytest

from tests.interop.page.conftest import window
from tests.interop.page.world import Sender, World, commit, populate, running_world

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.support.broker_process import Barnabas

pytestmark = pytest.mark.prove

MOST_BYTES: Final = 150_000


class Picture(NamedTuple):
    """
    A view in a theme; ``{2028}`` in an address is the segment with that offset.
    """

    address: str
    theme: Literal["light", "dark"]
    height: int
    prepare: Callable[[Page], object] = lambda page: page.mouse.move(0, 0)


def _lower(page: Page) -> None:
    page.evaluate("scrollTo(0, 222)")


PICTURES: Final = {
    "web-topics": Picture("/", "light", 455),
    "web-partition": Picture("/topics/orders/2", "light", 900),
    "web-partition-dark": Picture("/topics/orders/2", "dark", 900),
    "web-what-if": Picture(
        "/topics/orders/2?retention.ms=259200000&segment={13720}", "dark", 900, _lower
    ),
    "web-look-up": Picture("/topics/orders/2/segments/{2028}?offset=2028&step=2", "light", 790),
    "web-group": Picture("/group?id=reports", "light", 755),
    "web-new-records": Picture("/topics/orders/tail", "dark", 640),
}


def _address(template: str, log: Path) -> str:
    """
    Where segments end depends on the time of day and on how producers batch.
    """
    bases = sorted(int(file.stem) for file in log.glob("*.log"))

    def segment(offset: re.Match[str]) -> str:
        return str(bases[bisect_right(bases, int(offset[1])) - 1])

    return re.sub(r"{(\d+)}", segment, template)


@pytest.fixture(scope="module")
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """
    A broker that has nothing but what may be shown.
    """
    with running_world(tmp_path_factory.mktemp("broker")) as made:
        members = populate(made.broker, is_hostile=False)
        # Brokers look at groups once in a minute: only pictures that are kept are worth the wait.
        read_slowly(made.broker, 65 if request.config.getoption("--page-images") else 0)
        yield made
        for member in members:
            member.close()


def read_slowly(broker: Barnabas, seconds: int) -> None:
    """
    A group that reads less than is written; its pace is known if the broker looks at it meanwhile.
    """
    for read in (0, 20):
        places = [("telemetry", partition, 4500 + 900 * partition + read) for partition in range(4)]
        commit(broker, "reports", places)
        time.sleep(seconds if read == 0 else 0)


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    given = request.config.getoption("--page-images")
    return Path(given) if given else tmp_path


@contextmanager
def traffic(world: World) -> Iterator[None]:
    """
    Producers are at work meanwhile.
    """
    stop = threading.Event()
    sender = Sender(world.broker, compression_type="zstd")
    chance = random.Random(1)

    def work() -> None:
        number = 0
        while not stop.wait(0.02):
            for _ in range(12):
                number += 1
                now_ms = int(time.time() * 1000)
                order = {
                    "order": f"{chance.getrandbits(48):012x}",
                    "customer": chance.randrange(20_000),
                    "total": round(chance.uniform(3, 400), 2),
                    "state": "placed",
                }
                sender.send("orders", number % 6, now_ms, json.dumps(order), f"c{number}")
                sender.send("telemetry", number % 4, now_ms, json.dumps({"v": number}))
            sender.producer.poll(0)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        sender.flush()


def _smaller(png: bytes) -> bytes:
    """
    The same picture with 256 colours, which are enough for it.
    """
    from PIL import Image  # noqa: PLC0415  # may not be there

    found = io.BytesIO()
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    few = picture.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(found, "PNG", optimize=True)
    return found.getvalue()


@pytest.mark.parametrize("name", PICTURES)
def test_picture_of_each_view_is_taken(
    browser: Browser, world: World, folder: Path, name: str
) -> None:
    picture = PICTURES[name]
    with (
        window(
            browser,
            world.url,
            viewport={"width": 1240, "height": picture.height},
            color_scheme=picture.theme,
            reduced_motion="reduce",
            device_scale_factor=1.5,
        ) as viewer,
        traffic(world),
    ):
        page = viewer.go(_address(picture.address, world.broker.data / "orders-2"))
        page.wait_for_timeout(3000)
        picture.prepare(page)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.png"
        path.write_bytes(_smaller(page.screenshot()))

    assert path.stat().st_size < MOST_BYTES
