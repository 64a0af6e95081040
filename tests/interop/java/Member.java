import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A member of a consumer group, see tests/interop/consumer_member.py: its lines are the same.
 *
 * <p>Arguments: the broker, the group, the protocol, a topic or a pattern that begins with ^, and
 * an instance id or "-".
 */
public final class Member {
    private Member() {}

    public static void main(String[] args) throws Exception {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", args[0]);
        config.put("group.id", args[1]);
        config.put("group.protocol", args[2]);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", false);
        config.put("metadata.max.age.ms", 500);
        config.put("reconnect.backoff.max.ms", 200);
        config.put("retry.backoff.max.ms", 200);
        config.put("key.deserializer", ByteArrayDeserializer.class.getName());
        config.put("value.deserializer", ByteArrayDeserializer.class.getName());
        if (args[2].equals("classic")) {
            config.put("session.timeout.ms", 6000);
            config.put("heartbeat.interval.ms", 500);
        }
        if (!args[4].equals("-")) {
            config.put("group.instance.id", args[4]);
        }
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config);
        AtomicBoolean stops = new AtomicBoolean();
        CountDownLatch closed = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stops.set(true);
            consumer.wakeup();
            try {
                closed.await();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }));
        if (args[3].startsWith("^")) {
            consumer.subscribe(new SubscriptionPattern(args[3]));
        } else {
            consumer.subscribe(List.of(args[3]));
        }
        try {
            read(consumer, stops);
        } finally {
            consumer.close();
            closed.countDown();
        }
    }

    private static void read(KafkaConsumer<byte[], byte[]> consumer, AtomicBoolean stops) {
        String told = null;
        while (!stops.get()) {
            try {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                TreeSet<String> names = new TreeSet<>();
                for (TopicPartition each : consumer.assignment()) {
                    names.add(each.topic() + ":" + each.partition());
                }
                String assigned = names.isEmpty() ? "-" : String.join(",", names);
                if (!assigned.equals(told)) {
                    told = assigned;
                    System.out.println("assigned " + assigned);
                }
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    System.out.println(
                            "read " + record.topic() + " " + record.partition() + " " + record.offset());
                }
                if (!records.isEmpty()) {
                    consumer.commitSync();
                }
            } catch (WakeupException error) {
                // It is told to stop.
            } catch (RuntimeException error) {
                System.err.println(error);
            }
        }
    }
}
