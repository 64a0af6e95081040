"""
Consumer groups.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.server.http.guard import Refused
from barnabas.server.http.json_api import Answer, Nothing, Operation
from barnabas.server.http.pages import Entry, Page, page
from barnabas.testing.control.control import Control
from barnabas.testing.views import Group


def list_groups(control: Control, given: Page) -> Answer:
    found = list(control.broker.groups.values())
    return page("groups", found, given, lambda group: Entry(_view(group)))


def show(control: Control, _: Nothing, *, group: str) -> Answer:
    found = control.broker.groups
    if group not in found:
        raise Refused(404, f"there is no group {group}: GET /v1/groups lists all")
    return Answer(_view(found[group]))


def _view(group: Group) -> dict[str, Any]:
    return {
        "id": group.id,
        "state": group.state,
        "lag": group.lag,
        "members": [
            {
                "id": member.id,
                "client_id": member.client_id,
                "host": member.host,
                "partitions": [
                    {"topic": topic, "partition": partition}
                    for topic, partition in member.partitions
                ],
            }
            for member in group.members
        ],
        "offsets": [
            {
                "topic": topic,
                "partition": partition,
                "offset": offset,
                "lag": group.lags.get((topic, partition)),
            }
            for (topic, partition), offset in group.offsets.items()
        ],
    }


OPERATIONS: Final = (
    Operation("GET", "/v1/groups", "the consumer groups", list_groups, Page),
    Operation("GET", "/v1/groups/{group:path}", "a group: members, offsets and lag", show),
)
