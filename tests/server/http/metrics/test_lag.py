from __future__ import annotations

import pytest

from barnabas.server.http.metrics.lag import Lag, lag_behind
from tests.support.logs import LogHome, append, bases


@pytest.mark.parametrize(
    ("offset", "lag"),
    [
        (0, Lag(10, 1500)),
        (3, Lag(7, 1050)),
        (6, Lag(4, 600)),
        (9, Lag(1, 150)),
        (10, Lag(0, 0)),
        (99, Lag(0, 0)),
    ],
)
def test_a_part_of_a_segment_has_its_part_of_the_bytes(offset: int, lag: Lag) -> None:
    log = LogHome(segment_bytes=1000).open()
    append(log, 10)
    log.update_high_watermark(10)
    assert [0, 6] == bases(log)

    assert lag == lag_behind(log, offset)
