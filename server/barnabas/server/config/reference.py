"""
The reference of all options, made from their tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from barnabas.server.config.broker_config import BrokerConfig
from barnabas.server.config.client_metrics import ClientMetricsConfig
from barnabas.server.config.compatibility import INERT_OPTIONS, REFUSED_OPTIONS
from barnabas.server.config.dynamic_only import DynamicOnlyOptions
from barnabas.server.config.groups import GroupConfig
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.config.option_values import Option, Update
from barnabas.storage.config.options import Options

_TITLES = {
    "ClusterOptions": "The node and its metadata",
    "NetworkOptions": "Network",
    "LogOptions": "Logs",
    "RecordOptions": "Records",
    "CleanerOptions": "Compaction",
    "TopicOptions": "Topics",
    "GroupOptions": "Consumer groups",
    "TransactionOptions": "Transactions",
    "OwnOptions": "Barnabas itself",
}


def reference() -> str:
    """
    The reference as Markdown.
    """
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Options"
    yield ""
    yield "Made by `barnabas options` from the tables in the code."
    yield "Names, types and meanings are Apache Kafka's."
    yield ""
    yield "Those with a \\* take a new value while the broker runs, for one broker or for all of"
    yield "them; the value is stored in the metadata log. The others are read at the start. Every"
    yield "option of a topic can be changed at any time."
    for section in BrokerConfig.__bases__:
        yield ""
        yield f"## {_TITLES[section.__name__]}"
        yield ""
        yield "| option | type | default | values | |"
        yield "|---|---|---|---|---|"
        for option in section.options().values():  # type: ignore[attr-defined]  # all are Options
            yield _row(option)
    yield ""
    yield "## Topics' own options"
    yield ""
    yield "| option | type | default | values | broker's option | |"
    yield "|---|---|---|---|---|---|"
    for option in LogConfig.options().values():
        yield _row(option, ", ".join(f"`{name}`" for name in option.synonyms) + " | ")
    yield from _table("Groups' own options", GroupConfig, "Kept, and without an effect yet.")
    yield from _table(
        "Subscriptions to metrics of clients",
        ClientMetricsConfig,
        "Kept, and without an effect: no metrics are collected.",
    )
    yield from _names("Taken, without an effect", INERT_OPTIONS)
    yield ""
    yield "A running broker takes these from clients and keeps them: " + ", ".join(
        f"`{name}`" for name in DynamicOnlyOptions.options()
    )
    yield from _names("Refused", REFUSED_OPTIONS)


def _table(title: str, table: type[Options], sentence: str) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    yield sentence
    yield ""
    yield "| option | type | default | values | |"
    yield "|---|---|---|---|---|"
    for option in table.options().values():
        yield _row(option)


def _row(option: Option, before_doc: str = "") -> str:
    default = option.format(option.default)
    shown = f"`{default}`" if default else ""
    kind = option.type.name.lower()
    mark = "" if option.update is Update.READ_ONLY else r" \*"
    cells = f"| `{option.name}`{mark} | {kind} | {shown} | {option.range_text} | "
    return f"{cells}{before_doc}{option.doc} |"


def _names(title: str, reasons: Mapping[str, str]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        yield ""
        yield f"**{reason[0].upper()}{reason[1:]}:** " + ", ".join(f"`{name}`" for name in names)
