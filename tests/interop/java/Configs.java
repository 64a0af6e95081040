import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * What an administrator does with Apache Kafka's own client, and what it is told, one line each.
 */
public final class Configs {
    private static final long PATIENCE_MS = 20_000;

    private Configs() {}

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        Map<String, Object> properties = Map.of("bootstrap.servers", args[0]);
        try (Admin admin = Admin.create(properties)) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            configs(admin, new ConfigResource(ConfigResource.Type.TOPIC, topic));
            brokers(admin, topic);
            others(admin);
            partitions(admin, properties, topic);
        }
    }

    private static void configs(Admin admin, ConfigResource topic) throws Exception {
        alter(admin, topic, op("retention.ms", "60000", OpType.SET), op("cleanup.policy", "compact", OpType.APPEND));
        until(() -> "60000".equals(describe(admin, topic).get("retention.ms").value()));
        show("topic", admin, topic);
        alter(admin, topic, op("retention.ms", "soon", OpType.SET));
        alter(admin, topic, op("retention.ms", "5", OpType.APPEND));
        alter(admin, new ConfigResource(topic.type(), "nope"), op("retention.ms", "5", OpType.SET));
        alter(admin, topic, op("cleanup.policy", "delete", OpType.SUBTRACT), op("retention.ms", "", OpType.DELETE));
        until(() -> "compact".equals(describe(admin, topic).get("cleanup.policy").value()));
        show("topic again", admin, topic);
        alter(admin, topic, op("cleanup.policy", "delete", OpType.SET));
        until(() -> "delete".equals(describe(admin, topic).get("cleanup.policy").value()));
    }

    private static void brokers(Admin admin, String topic) throws Exception {
        ConfigResource all = new ConfigResource(ConfigResource.Type.BROKER, "");
        ConfigResource one = new ConfigResource(ConfigResource.Type.BROKER, "1");
        ConfigResource inherits = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        alter(admin, all, op("log.retention.ms", "70000", OpType.SET));
        alter(admin, one, op("log.segment.bytes", "2000000", OpType.SET));
        until(() -> "2000000".equals(describe(admin, inherits).get("segment.bytes").value()));
        until(() -> "70000".equals(describe(admin, inherits).get("retention.ms").value()));
        show("inherits", admin, inherits);
        show("all brokers", admin, all);
        for (String name : List.of("log.retention.ms", "log.segment.bytes", "num.partitions", "log.cleaner.threads")) {
            System.out.println("broker " + line(describe(admin, one).get(name)));
        }
        alter(admin, one, op("num.partitions", "5", OpType.SET));
        alter(admin, one, op("log.retention.ms", "soon", OpType.SET));
        alter(admin, all, op("log.retention.ms", "", OpType.DELETE));
        alter(admin, one, op("log.segment.bytes", "", OpType.DELETE));
        until(() -> "1073741824".equals(describe(admin, inherits).get("segment.bytes").value()));
        until(() -> "604800000".equals(describe(admin, inherits).get("retention.ms").value()));
    }

    private static void others(Admin admin) throws Exception {
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, "g");
        alter(admin, group, op("consumer.session.timeout.ms", "50000", OpType.SET));
        until(() -> "50000".equals(describe(admin, group).get("consumer.session.timeout.ms").value()));
        show("group", admin, group);
        ConfigResource metrics = new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "m");
        alter(admin, metrics, op("interval.ms", "5000", OpType.SET));
        until(() -> "5000".equals(describe(admin, metrics).get("interval.ms").value()));
        show("metrics", admin, metrics);
        ConfigResource logger = new ConfigResource(ConfigResource.Type.BROKER_LOGGER, "1");
        alter(admin, logger, op("root", "ERROR", OpType.SET));
        System.out.println("logger " + line(describe(admin, logger).get("root")));
    }

    private static void partitions(Admin admin, Map<String, Object> properties, String topic) throws Exception {
        TopicPartition first = new TopicPartition(topic, 0);
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < 10; i++) {
                producer.send(new ProducerRecord<>(topic, 0, null, new byte[10])).get();
            }
        }
        for (long offset : List.of(3L, 2L, 11L, -1L)) {
            attempt("delete below " + offset, () ->
                    admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(offset)))
                            .lowWatermarks().get(first).get().lowWatermark());
        }
        System.out.println("earliest " + admin.listOffsets(Map.of(first, OffsetSpec.earliest()))
                .partitionResult(first).get().offset());
        CreatePartitionsOptions only = new CreatePartitionsOptions().validateOnly(true);
        grow(admin, topic, NewPartitions.increaseTo(3), only);
        grow(admin, topic, NewPartitions.increaseTo(3, List.of(List.of(1), List.of(1))), new CreatePartitionsOptions());
        grow(admin, topic, NewPartitions.increaseTo(2), new CreatePartitionsOptions());
        grow(admin, "nope", NewPartitions.increaseTo(2), new CreatePartitionsOptions());
        until(() -> admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size() == 3);
    }

    private static void grow(Admin admin, String topic, NewPartitions wanted, CreatePartitionsOptions options)
            throws Exception {
        attempt("grow", () -> admin.createPartitions(Map.of(topic, wanted), options).all().get());
    }

    private static AlterConfigOp op(String name, String value, OpType type) {
        return new AlterConfigOp(new ConfigEntry(name, value), type);
    }

    private static void alter(Admin admin, ConfigResource resource, AlterConfigOp... ops) throws Exception {
        Map<ConfigResource, Collection<AlterConfigOp>> wanted = Map.of(resource, List.of(ops));
        AlterConfigsOptions only = new AlterConfigsOptions().validateOnly(true);
        attempt("validate", () -> admin.incrementalAlterConfigs(wanted, only).all().get());
        attempt("alter", () -> admin.incrementalAlterConfigs(wanted).all().get());
    }

    private static Config describe(Admin admin, ConfigResource resource) throws Exception {
        DescribeConfigsOptions options = new DescribeConfigsOptions().includeSynonyms(true);
        return admin.describeConfigs(List.of(resource), options).all().get().get(resource);
    }

    private static void show(String title, Admin admin, ConfigResource resource) throws Exception {
        TreeMap<String, ConfigEntry> byName = new TreeMap<>();
        describe(admin, resource).entries().forEach(entry -> byName.put(entry.name(), entry));
        byName.values().forEach(entry -> System.out.println(title + " " + line(entry)));
    }

    private static String line(ConfigEntry entry) {
        return entry.name() + "=" + entry.value() + " " + entry.source() + " " + entry.type()
                + (entry.isReadOnly() ? " read-only" : "") + (entry.isSensitive() ? " sensitive" : "")
                + " " + entry.synonyms();
    }

    private static void attempt(String what, Callable<Object> work) throws Exception {
        try {
            System.out.println(what + ": " + work.call());
        } catch (ExecutionException e) {
            System.out.println(what + ": " + e.getCause());
        }
    }

    private static void until(Callable<Boolean> condition) throws Exception {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (!condition.call()) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("it does not come true");
            }
        }
    }
}
