"""
Looking at configs and changing them, over the wire.

What has configs is a *resource*: a topic, a broker, a group, a subscription to metrics of clients,
or the loggers of a broker. Each kind knows its options and its rules; what is common to all of
them, which is how a request becomes records of the metadata log, is here once::

    request -> ConfigAdmin --+-- TopicConfigKind     LogConfig
                             +-- BrokerConfigKind    BrokerConfig, what a running broker may change
                             +-- GroupConfigKind     GroupConfig
                             +-- ClientMetricsKind   ClientMetricsConfig
                             +-- loggers             of this process, and never stored

Rules, codes and their order are those of Kafka's ``ConfigAdminManager``, which looks at a request
first, and ``ConfigurationControlManager``, which has the last word.
"""

from barnabas.server.dynamic_config.admin.admin import ConfigAdmin
from barnabas.server.dynamic_config.admin.changes import AlterResource, Change, Operation
from barnabas.server.dynamic_config.admin.entries import ConfigEntry

__all__ = ["AlterResource", "Change", "ConfigAdmin", "ConfigEntry", "Operation"]
