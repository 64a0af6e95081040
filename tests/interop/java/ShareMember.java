import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a share group, which does with each record what the record says.
 *
 * <p>Arguments: the broker, the group, the topic, and how it acknowledges: sync (commitSync after
 * each poll) or async (the next fetch carries the acknowledgements, a callback has the results). The
 * latter acquires parts of batches too.
 *
 * <p>The value of a record is a number, and a word for each delivery, the last one of which counts
 * for all further ones: accept, release, reject, hold (wait for a line "go NUMBER", then accept),
 * renew (until there was such a line, then accept), leave (release, and leave the group). Without a
 * word it is accepted.
 *
 * <p>Lines that it prints: "got TIME NUMBER PARTITION COUNT", with the count of deliveries, then
 * "done TIME NUMBER TYPE" or "failed TIME NUMBER TYPE ERROR".
 */
public final class ShareMember {
    private record Acknowledged(String number, AcknowledgeType type) {}

    private final KafkaShareConsumer<String, String> consumer;
    private final boolean isSync;
    private final Set<String> released = ConcurrentHashMap.newKeySet();
    private final Map<TopicPartition, Map<Long, Acknowledged>> pending = new HashMap<>();
    private volatile boolean stops;

    private ShareMember(KafkaShareConsumer<String, String> consumer, boolean isSync) {
        this.consumer = consumer;
        this.isSync = isSync;
    }

    public static void main(String[] args) throws Exception {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", args[0]);
        config.put("group.id", args[1]);
        config.put("share.acknowledgement.mode", "explicit");
        config.put("share.acquire.mode", args[3].equals("sync") ? "batch_optimized" : "record_limit");
        config.put("max.poll.records", 50);
        config.put("allow.auto.create.topics", false);
        config.put("metadata.max.age.ms", 500);
        config.put("reconnect.backoff.max.ms", 200);
        config.put("retry.backoff.max.ms", 200);
        config.put("key.deserializer", StringDeserializer.class.getName());
        config.put("value.deserializer", StringDeserializer.class.getName());
        KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(config);
        ShareMember member = new ShareMember(consumer, args[3].equals("sync"));
        CountDownLatch closed = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            member.stops = true;
            try {
                closed.await();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }));
        Thread listener = new Thread(member::listen);
        listener.setDaemon(true);
        listener.start();
        if (!member.isSync) {
            consumer.setAcknowledgementCommitCallback((offsets, error) ->
                    offsets.forEach((partition, those) -> member.confirm(partition, those, error)));
        }
        consumer.subscribe(List.of(args[2]));
        try {
            member.run();
        } finally {
            consumer.close();
            closed.countDown();
        }
    }

    private void listen() {
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                released.add(line.split(" ")[1]);
            }
        } catch (IOException error) {
            System.err.println(error);
        }
    }

    private void run() throws InterruptedException {
        while (!stops) {
            try {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
                tell(records);
                if (acknowledge(records) && isSync && !records.isEmpty()) {
                    consumer.commitSync().forEach(this::confirmAll);
                }
            } catch (KafkaException | IllegalStateException error) {
                System.err.println(error);
            }
        }
    }

    private static void tell(ConsumerRecords<String, String> records) {
        StringBuilder lines = new StringBuilder();
        for (ConsumerRecord<String, String> record : records) {
            lines.append("got ").append(System.currentTimeMillis())
                    .append(' ').append(number(record))
                    .append(' ').append(record.partition())
                    .append(' ').append(record.deliveryCount().orElseThrow())
                    .append('\n');
        }
        say(lines);
    }

    /** Acknowledges the records, and returns whether all of them are. */
    private boolean acknowledge(ConsumerRecords<String, String> records)
            throws InterruptedException {
        for (ConsumerRecord<String, String> record : records) {
            AcknowledgeType type = decide(record);
            if (type == null) {
                return false;
            }
            consumer.acknowledge(record, type);
            pending.computeIfAbsent(partition(record), each -> new HashMap<>())
                    .put(record.offset(), new Acknowledged(number(record), type));
        }
        return true;
    }

    private AcknowledgeType decide(ConsumerRecord<String, String> record)
            throws InterruptedException {
        String[] words = record.value().split(" ");
        int count = record.deliveryCount().orElseThrow();
        String word = words.length == 1 ? "accept" : words[Math.min(count, words.length - 1)];
        switch (word) {
            case "hold":
                while (!released.contains(words[0])) {
                    if (stops) {
                        return null;
                    }
                    Thread.sleep(10);
                }
                return AcknowledgeType.ACCEPT;
            case "renew":
                Thread.sleep(50);
                return released.contains(words[0]) ? AcknowledgeType.ACCEPT : AcknowledgeType.RENEW;
            case "leave":
                stops = true;
                return AcknowledgeType.RELEASE;
            default:
                return AcknowledgeType.valueOf(word.toUpperCase(Locale.ROOT));
        }
    }

    private void confirmAll(TopicIdPartition partition, Optional<KafkaException> error) {
        Map<Long, Acknowledged> those = pending.get(partition.topicPartition());
        if (those != null) {
            confirm(partition, Set.copyOf(those.keySet()), error.orElse(null));
        }
    }

    private void confirm(TopicIdPartition partition, Set<Long> offsets, Exception error) {
        Map<Long, Acknowledged> those = pending.getOrDefault(partition.topicPartition(), Map.of());
        StringBuilder lines = new StringBuilder();
        for (long offset : offsets) {
            Acknowledged one = those.isEmpty() ? null : those.remove(offset);
            if (one != null) { // not so for control records
                lines.append(error == null ? "done " : "failed ")
                        .append(System.currentTimeMillis())
                        .append(' ').append(one.number)
                        .append(' ').append(one.type.name())
                        .append(error == null ? "" : " " + error.getClass().getSimpleName())
                        .append('\n');
            }
        }
        say(lines);
    }

    private static TopicPartition partition(ConsumerRecord<String, String> record) {
        return new TopicPartition(record.topic(), record.partition());
    }

    private static String number(ConsumerRecord<String, String> record) {
        return record.value().split(" ")[0];
    }

    private static void say(StringBuilder lines) {
        System.out.print(lines);
        System.out.flush();
    }
}
