"""
What groups will lose unread, in the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from barnabas.server.http.api.attention import Attention, attention
from barnabas.storage.explain.wording.forecast import forecast_json, loss_sentence
from barnabas.storage.forecast.forecast import Forecast, ForecastVerdict

if TYPE_CHECKING:
    from barnabas.server.forecast.forecasts import Forecasts

Json = dict[str, Any]

_WORST_FIRST: Final = (
    ForecastVerdict.LOSS,
    ForecastVerdict.UNKNOWN,
    ForecastVerdict.IN_TIME,
    ForecastVerdict.NOTHING_UNREAD,
    ForecastVerdict.NEVER_DELETED,
)
NOTHING_UNREAD: Final[Json] = {"verdict": "nothing_unread", "loss": None}


def in_partition(
    forecasts: Forecasts | None, group_id: str, topic: str, partition: int
) -> Json | None:
    """
    The forecast of the last round for a group in a partition; None if there was none.
    """
    found = None if forecasts is None else forecasts.get(group_id, topic, partition)
    return None if found is None else forecast_json(found)


def in_sum(found: Iterable[Forecast | None]) -> Json | None:
    """
    The forecasts for the partitions of a group as one: the worst verdict, the sum of what will be
    lost, and when that begins. None if there is no forecast.
    """
    known = [each for each in found if each is not None]
    if not known:
        return None
    losses = [each.loss for each in known if each.loss is not None]
    verdict = min((each.verdict for each in known), key=_WORST_FIRST.index)
    return {
        "verdict": verdict.name.lower(),
        "loss": {
            "records": sum(loss.records for loss in losses),
            "bytes": sum(loss.size for loss in losses),
            "begins_ms": round(min(loss.begins_ms for loss in losses)),
        }
        if losses
        else None,
    }


def losses(forecasts: Forecasts | None) -> Iterator[Attention | None]:
    """
    The groups that will lose records unread; None between two others.
    """
    for key, found in () if forecasts is None else forecasts:
        if found.verdict is ForecastVerdict.LOSS:
            says = f"The group {key.group_id} reads {key.topic}-{key.partition} too slowly:"
            each = attention(
                "loses_unread", f"{says} {loss_sentence(found)}", key.topic, key.partition
            )
            each["group"] = key.group_id
            yield each
        yield None
