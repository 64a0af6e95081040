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
import org.apache.kafka.common.protocol.Errors;
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
    private static final int ONE_ABORT_IN = 4;
    private static final int MOST_RECORDS = 12;
    private static final String END = "end";
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
        ledger = new FileOutputStream(args[7], true);
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
        Transformer transformer = new Transformer(args);
        try {
            transformer.run(new Random(Long.parseLong(args[6])));
        } catch (RuntimeException error) {
            transformer.write("failed " + reason(error));
            error.printStackTrace();
        }
        // Without the closing of clients, which may wait for a broker that is gone.
        Runtime.getRuntime().halt(0);
    }

    /** What the broker said, by the name that Kafka's protocol has for it. */
    private static String reason(Throwable error) {
        Throwable cause = error;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        return Errors.forException(cause).name();
    }

    private void run(Random chance) throws IOException {
        producer.initTransactions();
        consumer.assign(List.of(from));
        OffsetAndMetadata committed = consumer.committed(Set.of(from), PATIENCE).get(from);
        int position = committed == null ? 0 : (int) committed.offset();
        write("started");
        int aborted = 0;
        for (int number = 0; ; number++) {
            if (number % ONE_ABORT_IN == 0) {
                aborted = number + chance.nextInt(ONE_ABORT_IN);
            }
            List<String> values = take(position, 1 + chance.nextInt(MOST_RECORDS));
            values.remove(END);
            if (values.isEmpty()) {
                break;
            }
            int end = position + values.size();
            write("begin " + number + " " + position + " " + end);
            producer.beginTransaction();
            for (String written : values) {
                int value = Integer.parseInt(written);
                String text = source + " " + name + " " + number + " " + value;
                producer.send(new ProducerRecord<>(topicOut, value % PARTITIONS, null, text));
            }
            producer.sendOffsetsToTransaction(
                    Map.of(from, new OffsetAndMetadata(end)), new ConsumerGroupMetadata(group));
            if (number == aborted) {
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

    /** The values of so many records, or fewer if one of them is the end. */
    private List<String> take(int first, int count) {
        consumer.seek(from, first);
        List<String> values = new ArrayList<>();
        while (values.size() < count && !values.contains(END)) {
            for (ConsumerRecord<String, String> record : consumer.poll(PATIENCE)) {
                if (values.size() < count) {
                    values.add(record.value());
                }
            }
        }
        return values;
    }

    private void write(String line) throws IOException {
        ledger.write((line + "\n").getBytes(StandardCharsets.UTF_8));
    }
}
