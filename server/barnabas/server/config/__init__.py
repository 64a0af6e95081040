"""
Configuration of the broker.
"""

from barnabas.server.config.broker_config import BrokerConfig
from barnabas.server.config.listeners import Listener
from barnabas.server.config.sources import Settings, load_settings

__all__ = ["BrokerConfig", "Listener", "Settings", "load_settings"]
