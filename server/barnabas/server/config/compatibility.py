"""
Options of Apache Kafka without an effect here.

A ``server.properties`` or an environment for Apache Kafka works unchanged: these names are
accepted, and the start logs those that are set, with the reason why they have no effect. Options
that would give a false sense of safety are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_INERT: Final[Mapping[str, str]] = {
    "the broker is no SASL client, and has no Kerberos": """
        sasl.client.callback.handler.class
        sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
        sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name
        sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
        sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms
        sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
        sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
        sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms
        sasl.login.retry.backoff.ms sasl.mechanism.controller.protocol
        sasl.mechanism.inter.broker.protocol sasl.oauthbearer.assertion.algorithm
        sasl.oauthbearer.assertion.claim.aud
        sasl.oauthbearer.assertion.claim.exp.seconds
        sasl.oauthbearer.assertion.claim.iss
        sasl.oauthbearer.assertion.claim.jti.include
        sasl.oauthbearer.assertion.claim.nbf.seconds
        sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
        sasl.oauthbearer.assertion.private.key.file
        sasl.oauthbearer.assertion.private.key.passphrase
        sasl.oauthbearer.assertion.template.file
        sasl.oauthbearer.client.credentials.client.id
        sasl.oauthbearer.client.credentials.client.secret
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
        sasl.oauthbearer.jwt.retriever.class
        sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
        sasl.oauthbearer.scope.claim.name
        sasl.oauthbearer.token.endpoint.url
    """,
    "TLS is OpenSSL's": """
        principal.builder.class security.providers
        ssl.endpoint.identification.algorithm ssl.engine.factory.class
        ssl.keymanager.algorithm ssl.protocol ssl.provider
        ssl.secure.random.implementation ssl.trustmanager.algorithm
    """,
    "tiered storage is not supported": """
        follower.fetch.last.tiered.offset.enable remote.fetch.max.wait.ms
        remote.list.offsets.request.timeout.ms
        remote.log.index.file.cache.total.size.bytes remote.log.index.file.cache.ttl.ms
        remote.log.manager.copier.thread.pool.size
        remote.log.manager.copy.max.bytes.per.second
        remote.log.manager.copy.quota.window.num
        remote.log.manager.copy.quota.window.size.seconds
        remote.log.manager.expiration.thread.pool.size
        remote.log.manager.fetch.max.bytes.per.second
        remote.log.manager.fetch.quota.window.num
        remote.log.manager.fetch.quota.window.size.seconds
        remote.log.manager.follower.thread.pool.size remote.log.manager.task.interval.ms
        remote.log.manager.task.retry.backoff.max.ms
        remote.log.manager.task.retry.backoff.ms remote.log.manager.task.retry.jitter
        remote.log.manager.thread.pool.size
        remote.log.metadata.custom.metadata.max.bytes
        remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path
        remote.log.metadata.manager.impl.prefix
        remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks
        remote.log.reader.threads remote.log.storage.manager.class.name
        remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
        remote.log.storage.system.enable
    """,
    "the share coordinator writes at once, into its own topic": """
        group.share.persister.class.name share.coordinator.append.linger.ms
        share.coordinator.cached.buffer.max.bytes share.coordinator.threads
        share.coordinator.write.timeout.ms share.fetch.purgatory.purge.interval.requests
    """,
    "replication is not throttled, for there is none": """
        alter.log.dirs.replication.quota.window.num
        alter.log.dirs.replication.quota.window.size.seconds replication.quota.window.num
        replication.quota.window.size.seconds
    """,
    "there is one node, without elections or replication": """
        add.partitions.to.txn.retry.backoff.max.ms
        add.partitions.to.txn.retry.backoff.ms auto.leader.rebalance.enable
        broker.heartbeat.interval.ms broker.session.timeout.ms
        controlled.shutdown.enable controller.performance.always.log.threshold.ms
        controller.performance.sample.period.ms controller.quorum.append.linger.ms
        controller.quorum.auto.join.enable controller.quorum.bootstrap.servers
        controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
        controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes
        controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms
        controller.quorum.retry.backoff.ms controller.socket.timeout.ms
        early.start.listeners initial.broker.registration.timeout.ms
        leader.imbalance.check.interval.seconds num.replica.alter.log.dirs.threads
        num.replica.fetchers replica.fetch.backoff.ms replica.fetch.max.bytes
        replica.fetch.min.bytes replica.fetch.response.max.bytes
        replica.fetch.wait.max.ms replica.lag.time.max.ms replica.selector.class
        replica.socket.receive.buffer.bytes replica.socket.timeout.ms
        security.inter.broker.protocol socket.connection.setup.timeout.max.ms
        socket.connection.setup.timeout.ms unclean.leader.election.interval.ms
    """,
    "threads and queues are organised differently": """
        delete.records.purgatory.purge.interval.requests
        fetch.purgatory.purge.interval.requests group.coordinator.append.linger.ms
        group.coordinator.background.threads group.coordinator.cached.buffer.max.bytes
        group.coordinator.threads num.io.threads num.network.threads
        producer.purgatory.purge.interval.requests
    """,
    "metrics are reported differently": """
        kafka.metrics.polling.interval.secs kafka.metrics.reporters metric.reporters
        metrics.num.samples metrics.recording.level metrics.sample.window.ms
        telemetry.max.bytes
    """,
    "they have no meaning here": """
        cordoned.log.dirs
        internal.metadata.delete.delay.millis
        internal.metadata.max.batch.size.in.bytes
        server.max.startup.time.ms unstable.api.versions.enable
        unstable.feature.versions.enable
    """,
}

_REMOVED: Final[Mapping[str, str]] = {
    "ZooKeeper is no longer needed: remove it": """
        zookeeper.connect zookeeper.connection.timeout.ms zookeeper.session.timeout.ms
        zookeeper.max.in.flight.requests zookeeper.set.acl zookeeper.clientCnxnSocket
        zookeeper.ssl.cipher.suites zookeeper.ssl.client.enable zookeeper.ssl.crl.enable
        zookeeper.ssl.enabled.protocols zookeeper.ssl.endpoint.identification.algorithm
        zookeeper.ssl.keystore.location zookeeper.ssl.keystore.password
        zookeeper.ssl.keystore.type zookeeper.ssl.ocsp.enable zookeeper.ssl.protocol
        zookeeper.ssl.truststore.location zookeeper.ssl.truststore.password
        zookeeper.ssl.truststore.type zookeeper.metadata.migration.enable
    """,
    "Kafka 4.0 removed it: remove it": """
        broker.id.generation.enable delegation.token.master.key
        inter.broker.protocol.version log.message.format.version
        log.message.timestamp.difference.max.ms offsets.commit.required.acks
        password.encoder.cipher.algorithm password.encoder.iterations
        password.encoder.key.length password.encoder.keyfactory.algorithm
        password.encoder.old.secret password.encoder.secret reserved.broker.max.id
        group.coordinator.new.enable
    """,
}


def _by_name(names_of: Mapping[str, str]) -> dict[str, str]:
    return {name: reason for reason, names in names_of.items() for name in names.split()}


INERT_OPTIONS: Final[Mapping[str, str]] = _by_name(_INERT)
"""
The options without an effect, with the reason.
"""
REMOVED_OPTIONS: Final[Mapping[str, str]] = _by_name(_REMOVED)
"""
The options that Kafka 4 does not have any more, with advice.
"""

REFUSED_OPTIONS: Final[Mapping[str, str]] = {
    "create.topic.policy.class.name": "policies are Java classes, and would not be applied",
    "alter.config.policy.class.name": "policies are Java classes, and would not be applied",
    "client.quota.callback.class": "it is a Java class, and would not be asked for quotas",
}
"""
The options that are refused unless they are empty, with the reason.
"""
