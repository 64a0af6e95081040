import java.time.Duration;
import java.util.List;
import java.util.Map;
import kafka.Kafka;
import kafka.tools.StorageTool;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.tools.TopicCommand;

/**
 * Starts a broker, and uses clients and a tool with it: the classes that all tests with Apache
 * Kafka have to load. The virtual machine archives them when it ends, as its options say.
 *
 * Arguments: the properties of the broker, and its address.
 */
public final class Rehearsal {
    private static final String CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ";
    private static final int LONGEST_MS = 120_000;

    public static void main(String[] args) throws Exception {
        String properties = args[0];
        String bootstrap = args[1];
        StorageTool.execute(new String[] {"format", "-t", CLUSTER_ID, "-c", properties}, System.out);
        Thread broker = new Thread(() -> Kafka.main(new String[] {properties}));
        broker.setDaemon(true);
        broker.start();
        TopicCommand.main("--bootstrap-server", bootstrap, "--create", "--topic", "t");
        Map<String, Object> producing = Map.of("bootstrap.servers", bootstrap,
            "max.block.ms", LONGEST_MS, "transactional.id", "t", "compression.type", "lz4");
        StringSerializer bytes = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(producing, bytes, bytes)) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>("t", "value")).get();
            producer.commitTransaction();
        }
        Map<String, Object> reading = Map.of("bootstrap.servers", bootstrap, "group.id", "g",
            "auto.offset.reset", "earliest", "isolation.level", "read_committed");
        StringDeserializer text = new StringDeserializer();
        long end = System.currentTimeMillis() + LONGEST_MS;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(reading, text, text)) {
            consumer.subscribe(List.of("t"));
            while (consumer.poll(Duration.ofMillis(100)).isEmpty()) {
                if (System.currentTimeMillis() > end) {
                    throw new IllegalStateException("nothing to read");
                }
            }
            consumer.commitSync();
        }
        System.exit(0);
    }
}
