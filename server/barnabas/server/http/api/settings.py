"""
The settings of a broker that runs, as ``barnabas explain`` knows them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

from barnabas.server.config.sources import Settings
from barnabas.server.dynamic_config.known_cluster import KnownCluster, Suppositions
from barnabas.storage.config.option_values import ConfigError

if TYPE_CHECKING:
    from barnabas.server.http.api.context import ApiContext
    from barnabas.storage.explain.known import TopicSettings


class SettingView(TypedDict):
    """
    The value of an option, and where it comes from.
    """

    value: str
    source: str


def known_cluster(api: ApiContext, assignments: Iterable[str] = ()) -> KnownCluster:
    """
    The settings of the broker, with those that somebody supposes.

    Raises:
        ConfigError: a name or a value is not acceptable.
    """
    parts = api.parts
    try:
        suppositions = Suppositions.parse(assignments)
    except ConfigError as error:
        raise ConfigError(str(error).replace("--set ", "set=")) from None
    return KnownCluster(
        Settings(texts=dict(parts.config.given)),
        suppositions,
        files=api.broker.files,
        clock=api.broker.clock,
        image=parts.image,
        node_id=parts.node_id,
    )


def settings_view(settings: TopicSettings) -> dict[str, SettingView]:
    """
    The settings of a topic by name.
    """
    return {
        setting.name: {"value": setting.value, "source": setting.source}
        for setting in settings.settings.values()
    }
