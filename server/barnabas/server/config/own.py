"""
Options of Barnabas itself.
"""

from __future__ import annotations

from typing import Final

from barnabas.storage.config.option_values import Validator
from barnabas.storage.config.options import (
    Bool,
    Int,
    Long,
    Names,
    Options,
    Text,
    option,
    section,
)
from barnabas.storage.units import SECONDS, MiB

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_CLUSTER_ID: Final = Validator(
    "visible characters of ASCII",
    lambda text: text.isascii() and text.isprintable() and " " not in text,
    "write visible characters of ASCII, or nothing for a new id",
)


@section
class OwnOptions(Options):
    """
    Options without a counterpart in Apache Kafka, or in its server properties.
    """

    barnabas_cluster_id: Text = option(
        "",
        "The id of the cluster, for new directories; a new id if it is empty."
        " CLUSTER_ID, the variable of Kafka's image, sets it as well.",
        validator=_CLUSTER_ID,
    )
    barnabas_read_only: Bool = option(
        False,
        "Whether the broker shows the log directories as they are, to look at them: nothing is "
        "written there, requests that would change the cluster are refused, and what members of "
        "groups change stays in memory.",
    )
    barnabas_log_level: Text = option(
        "INFO", "The least severe level of logged events.", one_of=LEVELS
    )
    barnabas_log_format: Text = option(
        "text",
        "The format of the log: one line of text, or one JSON object, for each event.",
        one_of=("text", "json"),
    )
    barnabas_jaas_file: Text = option(
        "",
        "A file of JAAS, whose section KafkaServer has the users of mechanisms that have no "
        "sasl.jaas.config. KAFKA_OPTS sets it as for Java: -Djava.security.auth.login.config=FILE.",
    )
    barnabas_max_coordinator_bytes: Long = option(
        256 * MiB,
        "The memory for each of: groups and their offsets; transactional ids; the states of share"
        " groups. What does not fit is refused, and what is there may always change.",
        at_least=1,
    )
    barnabas_shutdown_timeout_ms: Int = option(
        4 * SECONDS, "The time that a stop waits for requests in progress.", at_least=0
    )
    barnabas_http_listener: Text = option(
        "",
        "The address of the HTTP server with /healthz, /readyz, /metrics and /api/v1, as HOST:PORT;"
        " a port alone is of 127.0.0.1. No HTTP is served if it is empty. It needs the extra http.",
    )
    barnabas_http_hosts: Names = option(
        (),
        "Further names of this machine that a request over HTTP may have in its header Host. "
        "localhost, addresses, the name of the machine and the hosts of advertised.listeners are "
        "always known.",
    )
    barnabas_http_records: Bool = option(
        False,
        "Whether everybody who reaches the HTTP server may see the keys, values and headers of"
        " records. Without it, sizes, offsets and timestamps can be seen.",
    )
    barnabas_http_metrics_partitions: Int = option(
        10_000,
        "The most partitions with series of their own in /metrics, and the most partitions of "
        "groups. All others are summed up.",
        at_least=0,
    )
