import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Consumes, transforms and produces in transactions, until it is done or killed.
 *
 * <p>It takes the arguments and writes the ledger of {@code tests/interop/soak/transformer.py}, in
 * which Python's clients do the same.
 */
public final class Transformer {
    private static final int PARTITIONS = 3;
    private static final double ABORTS = 0.25;
    private static final int MOST_RECORDS = 12;
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private final int source;
    private final String name;
    private final String topicOut;
    private final String group;
    private final TopicPartition from;
    private final KafkaConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;
    private final FileOutputStream ledger;

    private Transformer(String[] args) throws IOException {
        source = Integer.parseInt(args[1]);
        name = args[2];
        topicOut = args[4];
        group = args[5];
        from = new TopicPartition(args[3], source);
        ledger = new FileOutputStream(args[8], true);
        consumer = new KafkaConsumer<>(
                Map.of(
                        "bootstrap.servers", args[0],
                        "group.id", group,
                        "enable.auto.commit", false),
                new StringDeserializer(),
                new StringDeserializer());
        producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", args[0], "transactional.id", topicOut + "-" + source),
                new StringSerializer(),
                new StringSerializer());
    }

    public static void main(String[] args) throws IOException {
        new Transformer(args).run(Integer.parseInt(args[6]), new Random(Long.parseLong(args[7])));
        // Without the closing of clients, which may wait for a broker that is gone.
        Runtime.getRuntime().halt(0);
    }

    private void run(int records, Random chance) throws IOException {
        producer.initTransactions();
        consumer.assign(List.of(from));
        OffsetAndMetadata committed = consumer.committed(Set.of(from), PATIENCE).get(from);
        int position = committed == null ? 0 : (int) committed.offset();
        for (int number = 0; position < records; number++) {
            int end = Math.min(position + 1 + chance.nextInt(MOST_RECORDS), records);
            List<Integer> values = take(position, end - position);
            write("begin " + number + " " + position + " " + end);
            producer.beginTransaction();
            for (int value : values) {
                String text = source + " " + name + " " + number + " " + value;
                producer.send(new ProducerRecord<>(topicOut, value % PARTITIONS, null, text));
            }
            producer.sendOffsetsToTransaction(
                    Map.of(from, new OffsetAndMetadata(end)), new ConsumerGroupMetadata(group));
            if (chance.nextDouble() < ABORTS) {
                write("abort " + number);
                producer.abortTransaction();
                write("aborted " + number);
            } else {
                write("commit " + number);
                producer.commitTransaction();
                write("committed " + number);
                position = end;
            }
        }
        write("done");
    }

    private List<Integer> take(int first, int count) {
        consumer.seek(from, first);
        List<Integer> values = new ArrayList<>();
        while (values.size() < count) {
            for (ConsumerRecord<String, String> record : consumer.poll(PATIENCE)) {
                if (values.size() < count) {
                    values.add(Integer.parseInt(record.value()));
                }
            }
        }
        return values;
    }

    private void write(String line) throws IOException {
        ledger.write((line + "\n").getBytes(StandardCharsets.UTF_8));
    }
}
