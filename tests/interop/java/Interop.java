import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Apache Kafka's own clients, driven by lines of text.
 *
 * <p>Records come in on standard input and go out on standard output, one a line, fields separated
 * by tabs: bytes in hexadecimal, nothing as "-", headers as name=value joined by commas.
 */
public final class Interop {
    private static final HexFormat HEX = HexFormat.of();
    private static final Duration POLL = Duration.ofMillis(200);
    private static final long PATIENCE_MS = 120_000;

    private Interop() {}

    public static void main(String[] args) throws Exception {
        String bootstrap = args[1];
        String topic = args[2];
        switch (args[0]) {
            case "create" -> create(bootstrap, topic, Integer.parseInt(args[3]), args);
            case "produce" -> produce(bootstrap, topic, args[3]);
            case "transact" -> transact(bootstrap, topic, args[3], Integer.parseInt(args[4]));
            case "read" -> read(bootstrap, topic, Integer.parseInt(args[3]), Long.parseLong(args[4]));
            case "group" -> group(bootstrap, topic, args[3], Long.parseLong(args[4]));
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void create(String bootstrap, String topic, int partitions, String[] args)
            throws Exception {
        Map<String, String> configs = new java.util.HashMap<>();
        for (int i = 4; i < args.length; i++) {
            String[] pair = args[i].split("=", 2);
            configs.put(pair[0], pair[1]);
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            NewTopic created = new NewTopic(topic, partitions, (short) 1).configs(configs);
            admin.createTopics(List.of(created)).all().get();
        }
    }

    /** Sends what it reads and prints partition and offset of each record, in order. */
    private static void produce(String bootstrap, String topic, String codec) throws Exception {
        List<Future<RecordMetadata>> answers = new ArrayList<>();
        BufferedReader in = input();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(producer(bootstrap, codec))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                answers.add(producer.send(parse(topic, line)));
            }
            producer.flush();
        }
        print(answers);
    }

    /** The same in transactions of that many records, every second of which is aborted. */
    private static void transact(String bootstrap, String topic, String codec, int size)
            throws Exception {
        Map<String, Object> settings = producer(bootstrap, codec);
        settings.put("transactional.id", topic + "-java");
        List<Future<RecordMetadata>> answers = new ArrayList<>();
        List<String> lines = input().lines().toList();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            producer.initTransactions();
            for (int start = 0; start < lines.size(); start += size) {
                producer.beginTransaction();
                for (String line : lines.subList(start, Math.min(start + size, lines.size()))) {
                    answers.add(producer.send(parse(topic, line)));
                }
                producer.flush();
                if (start / size % 2 == 0) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        }
        print(answers);
    }

    private static Map<String, Object> producer(String bootstrap, String codec) {
        return new java.util.HashMap<>(Map.of(
                "bootstrap.servers", bootstrap,
                "compression.type", codec,
                "key.serializer", ByteArraySerializer.class,
                "value.serializer", ByteArraySerializer.class));
    }

    private static BufferedReader input() {
        return new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    }

    private static void print(List<Future<RecordMetadata>> answers) throws Exception {
        PrintStream out = output();
        for (Future<RecordMetadata> answer : answers) {
            out.println(answer.get().partition() + "\t" + answer.get().offset());
        }
        out.flush();
    }

    private static void read(String bootstrap, String topic, int partitions, long count)
            throws Exception {
        Map<String, Object> settings = consumer(bootstrap);
        PrintStream out = output();
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            List<TopicPartition> all = new ArrayList<>();
            for (int n = 0; n < partitions; n++) {
                all.add(new TopicPartition(topic, n));
            }
            consumer.assign(all);
            for (long seen = 0; seen < count && System.currentTimeMillis() < deadline; ) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                    out.println(format(record));
                    seen++;
                }
            }
        }
        out.flush();
    }

    /** Two members of one group, each in a thread; a line says which member saw the record. */
    private static void group(String bootstrap, String topic, String group, long count)
            throws Exception {
        AtomicLong seen = new AtomicLong();
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        Callable<List<String>> member = () -> {
            Map<String, Object> settings = consumer(bootstrap);
            settings.put("group.id", group);
            List<String> lines = new ArrayList<>();
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
                consumer.subscribe(List.of(topic));
                while (seen.get() < count) {
                    if (System.currentTimeMillis() > deadline) {
                        throw new TimeoutException(seen + " of " + count + " records");
                    }
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                        lines.add(format(record));
                        seen.incrementAndGet();
                    }
                    commit(consumer);
                }
            }
            return lines;
        };
        ExecutorService threads = Executors.newFixedThreadPool(2);
        List<Future<List<String>>> members = threads.invokeAll(List.of(member, member));
        threads.shutdown();
        PrintStream out = output();
        for (int number = 0; number < 2; number++) {
            for (String line : members.get(number).get()) {
                out.println(number + "\t" + line);
            }
        }
        out.flush();
    }

    /** What a rebalance interrupts is committed by the consumer itself when it is revoked. */
    private static void commit(KafkaConsumer<byte[], byte[]> consumer) {
        try {
            consumer.commitSync();
        } catch (RebalanceInProgressException again) {
            // The next poll joins the group and commits first.
        }
    }

    private static Map<String, Object> consumer(String bootstrap) {
        return new java.util.HashMap<>(Map.of(
                "bootstrap.servers", bootstrap,
                "auto.offset.reset", "earliest",
                "key.deserializer", ByteArrayDeserializer.class,
                "value.deserializer", ByteArrayDeserializer.class));
    }

    private static ProducerRecord<byte[], byte[]> parse(String topic, String line) {
        String[] fields = line.split("\t", -1);
        Integer partition = fields[0].equals("-") ? null : Integer.valueOf(fields[0]);
        Long timestamp = fields[1].equals("-") ? null : Long.valueOf(fields[1]);
        List<Header> headers = new ArrayList<>();
        if (!fields[4].isEmpty()) {
            for (String header : fields[4].split(",")) {
                String[] pair = header.split("=", 2);
                String name = new String(HEX.parseHex(pair[0]), StandardCharsets.UTF_8);
                headers.add(new RecordHeader(name, bytes(pair[1])));
            }
        }
        return new ProducerRecord<>(
                topic, partition, timestamp, bytes(fields[2]), bytes(fields[3]), headers);
    }

    private static String format(ConsumerRecord<byte[], byte[]> record) {
        List<String> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            byte[] name = header.key().getBytes(StandardCharsets.UTF_8);
            headers.add(HEX.formatHex(name) + "=" + text(header.value()));
        }
        return String.join("\t",
                Integer.toString(record.partition()),
                Long.toString(record.offset()),
                Long.toString(record.timestamp()),
                text(record.key()),
                text(record.value()),
                String.join(",", headers));
    }

    private static byte[] bytes(String text) {
        return text.equals("-") ? null : HEX.parseHex(text);
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "-" : HEX.formatHex(bytes);
    }

    private static PrintStream output() throws IOException {
        return new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false,
                StandardCharsets.US_ASCII);
    }
}
