import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.server.util.ThroughputThrottler;

/**
 * Produces at a fixed rate, as Kafka's ProducerPerformance does, and tells microseconds where that
 * has whole milliseconds.
 *
 * <p>Arguments: the broker, the topic, how many records warm up, how many count, their size in
 * bytes, and how many are sent a second. It prints the 50th, 95th, 99th and 99.9th percentile, in
 * ms, of the time from the call of {@code send} to that of its callback.
 */
public final class PacedProducer {
    private static final double NS_PER_MS = 1e6;
    private static final double[] PARTS = {0.5, 0.95, 0.99, 0.999};

    private PacedProducer() {}

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int warmUp = Integer.parseInt(args[2]);
        int count = Integer.parseInt(args[3]);
        byte[] value = "x".repeat(Integer.parseInt(args[4])).getBytes(StandardCharsets.US_ASCII);
        double perSecond = Double.parseDouble(args[5]);

        Properties config = new Properties();
        config.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        config.put(ProducerConfig.LINGER_MS_CONFIG, "0");
        long[] elapsed = new long[warmUp + count];
        AtomicReference<Exception> failure = new AtomicReference<>();
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            ThroughputThrottler throttler =
                    new ThroughputThrottler(perSecond, System.currentTimeMillis());
            for (int i = 0; i < elapsed.length; i++) {
                int index = i;
                long nowMs = System.currentTimeMillis();
                long start = System.nanoTime();
                producer.send(new ProducerRecord<>(topic, value), (metadata, error) -> {
                    elapsed[index] = System.nanoTime() - start;
                    failure.compareAndSet(null, error);
                });
                if (throttler.shouldThrottle(i, nowMs)) {
                    throttler.throttle();
                }
            }
        }
        if (failure.get() != null) {
            throw failure.get();
        }
        long[] counted = Arrays.copyOfRange(elapsed, warmUp, elapsed.length);
        Arrays.sort(counted);
        for (double part : PARTS) {
            double ms = counted[(int) (part * (count - 1))] / NS_PER_MS;
            System.out.printf(Locale.ROOT, "%.3f%n", ms);
        }
    }
}
