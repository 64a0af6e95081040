"""
DescribeConfigs and AlterConfigs.

A *resource* has configs: a topic, a broker, a group, a subscription to metrics of clients, or the
loggers of a broker. Each kind has its own options and rules; all share the way from a request to
records of the metadata log::

    request -> ConfigAdmin --+-- TopicConfigKind     LogConfig
                             +-- BrokerConfigKind    BrokerConfig, what a running broker may change
                             +-- GroupConfigKind     GroupConfig
                             +-- ClientMetricsKind   ClientMetricsConfig
                             +-- loggers             of this process, and never stored

Rules, codes and their order are those of Kafka's ``ConfigAdminManager``, which checks a request
first, and ``ConfigurationControlManager``, which checks it last.
"""

from barnabas.server.dynamic_config.admin.admin import ConfigAdmin
from barnabas.server.dynamic_config.admin.changes import (
    AlterResource,
    ConfigChange,
    ConfigOperation,
)
from barnabas.server.dynamic_config.admin.entries import ConfigEntry

__all__ = ["AlterResource", "ConfigAdmin", "ConfigChange", "ConfigEntry", "ConfigOperation"]
