"""
Letting a running broker go by options that have changed.

What topics inherit is the business of ``ConfigAdmin``; here is what the parts of a broker go by
themselves. The options are those of Kafka's ``DynamicBrokerConfig`` that have an effect here.
"""

from __future__ import annotations

from barnabas.server.dynamic_config.brokers import BrokerConfigs
from barnabas.server.dynamic_config.cleaner import configure_cleaner
from barnabas.server.scheduling.workers import Workers
from barnabas.storage.manager.manager import LogManager


def configure_parts(brokers: BrokerConfigs, *, log_manager: LogManager, workers: Workers) -> None:
    """
    Let logs, their cleaner and the workers go by the options that count now. It blocks, while
    cleaner threads begin anew.
    """
    config = brokers.current()
    workers.resize(config.background_threads)
    log_manager.configure(
        producer_id_expiration_ms=config.producer_id_expiration_ms,
        transaction_verification=config.transaction_partition_verification_enable,
        recovery_threads_per_directory=config.num_recovery_threads_per_data_dir,
    )
    configure_cleaner(log_manager, brokers)
