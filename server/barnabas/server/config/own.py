"""
Options of Barnabas itself.
"""

from __future__ import annotations

from barnabas.storage.config.options import (
    Int,
    Options,
    Text,
    option,
    section,
)
from barnabas.storage.units import SECONDS

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


@section
class OwnOptions(Options):
    """
    What Apache Kafka has no name for, or configures outside of its server properties.
    """

    barnabas_cluster_id: Text = option(
        "",
        "The cluster that new directories are formatted for; a new one if it is empty."
        " CLUSTER_ID, as Kafka's image has it, says the same.",
    )
    barnabas_log_level: Text = option(
        "INFO", "How much the broker says of what it does.", one_of=LEVELS
    )
    barnabas_log_format: Text = option(
        "text",
        "One line of text for people, or one JSON object, for each event.",
        one_of=("text", "json"),
    )
    barnabas_shutdown_timeout_ms: Int = option(
        4 * SECONDS, "How long a stop waits for requests under way before it ends them.", at_least=0
    )
