import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeProducersResult.PartitionProducerState;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.ShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatRequest;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatResponse;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Leaves something of every kind that a cluster remembers, and tells what it remembers.
 *
 * <p>{@code leave} makes topics, configs, users, access rules, quotas, groups of every type,
 * producers and transactions. {@code tell} prints one fact a line.
 */
public final class Everything {
    private static final String TOPIC = "everything";
    private static final Duration POLL = Duration.ofMillis(200);
    private static final long PATIENCE_MS = 60_000;

    private final String bootstrap;
    private final Admin admin;

    private Everything(String bootstrap, Admin admin) {
        this.bootstrap = bootstrap;
        this.admin = admin;
    }

    public static void main(String[] args) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[1]))) {
            Everything everything = new Everything(args[1], admin);
            switch (args[0]) {
                case "leave" -> everything.leave();
                case "tell" -> everything.tell();
                default -> throw new IllegalArgumentException(args[0]);
            }
        }
    }

    // Leaving

    private void leave() throws Exception {
        leaveTopics();
        leaveConfigs();
        leaveSecurity();
        leaveProducers();
        leaveGroups();
    }

    private void leaveTopics() throws Exception {
        admin.createTopics(List.of(
                        new NewTopic(TOPIC, 3, (short) 1)
                                .configs(Map.of("retention.ms", "123456789", "compression.type", "lz4")),
                        new NewTopic("compacted", 1, (short) 1)
                                .configs(Map.of("cleanup.policy", "compact,delete")),
                        new NewTopic("gone", 1, (short) 1)))
                .all()
                .get();
        admin.deleteTopics(List.of("gone")).all().get();
    }

    private void leaveConfigs() throws Exception {
        set(ConfigResource.Type.BROKER, "", "log.retention.ms", "987654321");
        set(ConfigResource.Type.BROKER, "1", "log.cleaner.threads", "2");
        set(ConfigResource.Type.GROUP, "of-the-consumer-protocol", "consumer.session.timeout.ms", "50000");
        set(ConfigResource.Type.CLIENT_METRICS, "metrics", "interval.ms", "60000");
        admin.updateFeatures(
                        Map.of(
                                "eligible.leader.replicas.version",
                                new org.apache.kafka.clients.admin.FeatureUpdate(
                                        (short) 0,
                                        org.apache.kafka.clients.admin.FeatureUpdate.UpgradeType.SAFE_DOWNGRADE)),
                        new org.apache.kafka.clients.admin.UpdateFeaturesOptions())
                .all()
                .get();
    }

    private void set(ConfigResource.Type type, String name, String option, String value)
            throws Exception {
        AlterConfigOp change =
                new AlterConfigOp(new ConfigEntry(option, value), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), List.of(change)))
                .all()
                .get();
    }

    private void leaveSecurity() throws Exception {
        ScramCredentialInfo how = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192);
        admin.alterUserScramCredentials(
                        List.of(new UserScramCredentialUpsertion("josef", how, "secret")))
                .all()
                .get();
        admin.createAcls(List.of(new AclBinding(
                        new ResourcePattern(ResourceType.TOPIC, "every", PatternType.PREFIXED),
                        new AccessControlEntry(
                                "User:josef", "*", AclOperation.READ, AclPermissionType.ALLOW))))
                .all()
                .get();
        List<ClientQuotaAlteration> quotas = new ArrayList<>();
        for (String user : new String[] {"josef", null}) {
            Map<String, String> entity = new HashMap<>();
            entity.put(ClientQuotaEntity.USER, user);
            ClientQuotaAlteration.Op op =
                    new ClientQuotaAlteration.Op("producer_byte_rate", user == null ? 1e6 : 2e6);
            quotas.add(new ClientQuotaAlteration(new ClientQuotaEntity(entity), List.of(op)));
        }
        admin.alterClientQuotas(quotas).all().get();
    }

    /** Transactions that were committed and aborted, and one that is left open. */
    private void leaveProducers() throws Exception {
        try (Producer<String, String> producer = producer(Map.of())) {
            send(producer, "idempotent");
        }
        for (String end : List.of("committed", "aborted")) {
            try (Producer<String, String> producer = producer(Map.of("transactional.id", end))) {
                producer.initTransactions();
                producer.beginTransaction();
                send(producer, end);
                if (end.equals("committed")) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        }
        // Nobody closes it: that would abort the transaction.
        Producer<String, String> open =
                producer(Map.of("transactional.id", "open", "transaction.timeout.ms", "800000"));
        open.initTransactions();
        open.beginTransaction();
        send(open, "open");
    }

    private Producer<String, String> producer(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(settings);
        all.put("bootstrap.servers", bootstrap);
        return new KafkaProducer<>(all, new StringSerializer(), new StringSerializer());
    }

    private static void send(Producer<String, String> producer, String value) throws Exception {
        for (int n = 0; n < 6; n++) {
            producer.send(new ProducerRecord<>(TOPIC, n % 3, "key " + n, value + " " + n)).get();
        }
        producer.flush();
    }

    private void leaveGroups() throws Exception {
        for (String protocol : List.of("classic", "consumer")) {
            Map<String, Object> settings = reading("of-the-" + protocol + "-protocol");
            settings.put("group.protocol", protocol);
            settings.put("auto.offset.reset", "earliest");
            try (Consumer<String, String> consumer = new KafkaConsumer<>(settings)) {
                consumer.subscribe(List.of(TOPIC));
                readSome(() -> consumer.poll(POLL).count());
                consumer.commitSync();
            }
        }
        admin.alterConsumerGroupOffsets(
                        "by-hand",
                        Map.of(new TopicPartition(TOPIC, 2), new OffsetAndMetadata(1, "a remark")))
                .all()
                .get();
        set(ConfigResource.Type.GROUP, "share", "share.auto.offset.reset", "earliest");
        try (ShareConsumer<String, String> consumer = new KafkaShareConsumer<>(reading("share"))) {
            consumer.subscribe(List.of(TOPIC));
            readSome(() -> consumer.poll(POLL).count());
            consumer.commitSync();
        }
        leaveStreamsGroup();
    }

    private Map<String, Object> reading(String group) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("key.deserializer", StringDeserializer.class);
        settings.put("value.deserializer", StringDeserializer.class);
        return settings;
    }

    private interface Poll {
        int count();
    }

    private static void readSome(Poll poll) {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (poll.count() == 0) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("nothing to read");
            }
        }
    }

    /** A member joins, as Kafka Streams would, and leaves. */
    private void leaveStreamsGroup() throws Exception {
        StreamsGroupHeartbeatRequestData.Subtopology subtopology =
                new StreamsGroupHeartbeatRequestData.Subtopology()
                        .setSubtopologyId("0")
                        .setSourceTopics(List.of(TOPIC));
        StreamsGroupHeartbeatRequestData join = new StreamsGroupHeartbeatRequestData()
                .setGroupId("streams")
                .setMemberId("member")
                .setMemberEpoch(0)
                .setRebalanceTimeoutMs(60_000)
                .setProcessId("process")
                .setTopology(new StreamsGroupHeartbeatRequestData.Topology()
                        .setEpoch(0)
                        .setSubtopologies(List.of(subtopology)))
                .setActiveTasks(List.of())
                .setStandbyTasks(List.of())
                .setWarmupTasks(List.of())
                .setClientTags(List.of());
        int epoch = heartbeat(join);
        heartbeat(new StreamsGroupHeartbeatRequestData()
                .setGroupId("streams")
                .setMemberId("member")
                .setMemberEpoch(-1)
                .setEndpointInformationEpoch(epoch));
    }

    private int heartbeat(StreamsGroupHeartbeatRequestData data) throws Exception {
        String[] address = bootstrap.split(":");
        StreamsGroupHeartbeatRequest request =
                new StreamsGroupHeartbeatRequest.Builder(data).build((short) 0);
        RequestHeader header =
                new RequestHeader(ApiKeys.STREAMS_GROUP_HEARTBEAT, (short) 0, "everything", 1);
        ByteBuffer bytes = request.serializeWithHeader(header);
        try (Socket socket = new Socket(address[0], Integer.parseInt(address[1]))) {
            DataOutputStream out = new DataOutputStream(socket.getOutputStream());
            out.writeInt(bytes.remaining());
            out.write(bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.remaining());
            DataInputStream in = new DataInputStream(socket.getInputStream());
            byte[] answer = in.readNBytes(in.readInt());
            StreamsGroupHeartbeatResponse response = (StreamsGroupHeartbeatResponse)
                    AbstractResponse.parseResponse(ByteBuffer.wrap(answer), header);
            if (response.data().errorCode() != 0) {
                throw new IllegalStateException(response.data().toString());
            }
            return response.data().memberEpoch();
        }
    }

    // Telling

    private void tell() throws Exception {
        Set<String> facts = new TreeSet<>();
        Collection<TopicDescription> topics =
                admin.describeTopics(List.of(TOPIC, "compacted", "__consumer_offsets",
                                "__transaction_state", "__share_group_state"))
                        .allTopicNames()
                        .get()
                        .values();
        for (TopicDescription topic : topics) {
            facts.add("topic " + topic.name() + " " + topic.topicId() + " partitions "
                    + topic.partitions().size());
        }
        facts.add("topics " + new TreeSet<>(admin.listTopics().names().get()));
        tellConfigs(facts);
        tellSecurity(facts);
        tellProducers(facts);
        tellGroups(facts);
        facts.forEach(System.out::println);
    }

    private void tellConfigs(Set<String> facts) throws Exception {
        List<ConfigResource> resources = List.of(
                new ConfigResource(ConfigResource.Type.TOPIC, TOPIC),
                new ConfigResource(ConfigResource.Type.TOPIC, "compacted"),
                new ConfigResource(ConfigResource.Type.BROKER, ""),
                new ConfigResource(ConfigResource.Type.BROKER, "1"),
                new ConfigResource(ConfigResource.Type.GROUP, "of-the-consumer-protocol"),
                new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "metrics"));
        admin.describeConfigs(resources).all().get().forEach((resource, config) -> {
            for (ConfigEntry entry : config.entries()) {
                if (entry.source().name().startsWith("DYNAMIC")) {
                    facts.add("config " + resource + " " + entry.name() + "=" + entry.value());
                }
            }
        });
        admin.describeFeatures()
                .featureMetadata()
                .get()
                .finalizedFeatures()
                .forEach((name, range) -> facts.add("feature " + name + " " + range.maxVersionLevel()));
    }

    private void tellSecurity(Set<String> facts) throws Exception {
        admin.describeUserScramCredentials().all().get().values().forEach(u -> facts.add("user " + u));
        admin.describeAcls(AclBindingFilter.ANY).values().get().forEach(acl -> facts.add("acl " + acl));
        admin.describeClientQuotas(ClientQuotaFilter.all())
                .entities()
                .get()
                .forEach((entity, quotas) -> facts.add("quota " + entity.entries() + " " + quotas));
    }

    private void tellProducers(Set<String> facts) throws Exception {
        // Asked for by name first: that waits for their coordinators, and a list does not. It has
        // what is loaded by then, soon after a start nothing.
        facts.add("open " + admin.describeTransactions(List.of("committed", "aborted", "open")).all().get()
                .get("open").topicPartitions().stream().map(TopicPartition::toString).sorted().toList());
        for (TransactionListing transaction : admin.listTransactions().all().get()) {
            facts.add("transaction " + transaction.transactionalId() + " "
                    + transaction.producerId() + " " + transaction.state());
        }
        List<TopicPartition> partitions = List.of(
                new TopicPartition(TOPIC, 0), new TopicPartition(TOPIC, 1), new TopicPartition(TOPIC, 2));
        for (Map.Entry<TopicPartition, PartitionProducerState> state :
                admin.describeProducers(partitions).all().get().entrySet()) {
            for (ProducerState producer : state.getValue().activeProducers()) {
                facts.add("producer " + state.getKey() + " " + producer);
            }
        }
        for (String isolation : List.of("read_committed", "read_uncommitted")) {
            Map<String, Object> settings = reading("nobody");
            settings.put("isolation.level", isolation);
            settings.put("enable.auto.commit", "false");
            try (Consumer<String, String> consumer = new KafkaConsumer<>(settings)) {
                consumer.assign(partitions);
                consumer.seekToBeginning(partitions);
                Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
                List<String> values = new ArrayList<>();
                long deadline = System.currentTimeMillis() + PATIENCE_MS;
                while (partitions.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
                    consumer.poll(POLL).forEach(r -> values.add(r.partition() + ":" + r.offset() + " " + r.value()));
                    if (System.currentTimeMillis() > deadline) {
                        throw new IllegalStateException("read " + values + " up to " + ends);
                    }
                }
                facts.add(isolation + " " + new TreeSet<>(values));
            }
        }
    }

    private void tellGroups(Set<String> facts) throws Exception {
        for (String group :
                List.of("of-the-classic-protocol", "of-the-consumer-protocol", "by-hand", "streams")) {
            admin.listConsumerGroupOffsets(group)
                    .partitionsToOffsetAndMetadata()
                    .get()
                    .forEach((partition, offset) ->
                            facts.add("offset " + group + " " + partition + " " + offset));
        }
        admin.listShareGroupOffsets(Map.of("share", new ListShareGroupOffsetsSpec()))
                .partitionsToOffsetInfo("share")
                .get()
                .forEach((partition, offset) -> facts.add("share " + partition + " " + offset));
        facts.add("streams " + admin.describeStreamsGroups(List.of("streams")).all().get()
                .get("streams").subtopologies());
        // Last, when all their coordinators have answered.
        for (GroupListing group : admin.listGroups().all().get(30, TimeUnit.SECONDS)) {
            facts.add("group " + group.groupId() + " " + group.type().map(GroupType::toString).orElse("?")
                    + " " + group.groupState().map(Object::toString).orElse("?") + " " + group.protocol());
        }
    }
}
