"""
The application of changed options to the parts of a running broker.

The options are those of Kafka's ``DynamicBrokerConfig`` that have an effect here; ``ConfigAdmin``
applies the ones that topics inherit.
"""

from __future__ import annotations

from barnabas.server.dynamic_config.brokers import BrokerConfigs
from barnabas.server.dynamic_config.cleaner import configure_cleaner
from barnabas.server.scheduling.workers import Workers
from barnabas.storage.manager.manager import LogManager


def configure_parts(brokers: BrokerConfigs, *, log_manager: LogManager, workers: Workers) -> None:
    """
    Apply the current options to the logs, their cleaner and the workers. The call blocks while
    cleaner threads restart.
    """
    config = brokers.current()
    workers.resize(config.background_threads)
    log_manager.configure(
        producer_id_expiration_ms=config.producer_id_expiration_ms,
        transaction_verification=config.transaction_partition_verification_enable,
        recovery_threads_per_directory=config.num_recovery_threads_per_data_dir,
    )
    configure_cleaner(log_manager, brokers)
