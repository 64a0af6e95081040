import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Counts words exactly once with Kafka Streams, until it is told to end or killed.
 *
 * <p>Arguments: the broker, the application id, the topic of lines, the topic of counts, the
 * directory of its state, and the group protocol: classic or streams. As nothing is cached, each
 * word that it reads becomes a record: the word and how often it has been seen.
 */
public final class WordCount {
    private WordCount() {}

    public static void main(String[] args) throws InterruptedException {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> lines = builder.stream(args[2]);
        lines.flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word)
                .count()
                .toStream()
                .mapValues(count -> Long.toString(count))
                .to(args[3], Produced.with(Serdes.String(), Serdes.String()));

        KafkaStreams streams = new KafkaStreams(builder.build(), settings(args));
        CountDownLatch failed = new CountDownLatch(1);
        streams.setStateListener((now, before) -> {
            System.out.println("state " + now);
            if (now == KafkaStreams.State.ERROR) {
                failed.countDown();
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            boolean closed = streams.close(Duration.ofSeconds(30));
            Runtime.getRuntime().halt(closed && failed.getCount() > 0 ? 0 : 1);
        }));
        streams.start();
        failed.await();
        System.exit(1);
    }

    private static Properties settings(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("application.id", args[1]);
        settings.put("state.dir", args[4]);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("commit.interval.ms", "100");
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("repartition.purge.interval.ms", "1000");
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("group.protocol", args[5]);
        if (args[5].equals("classic")) {
            settings.put("consumer.session.timeout.ms", "2000");
            settings.put("consumer.heartbeat.interval.ms", "500");
        }
        settings.put("producer.transaction.timeout.ms", "2000");
        return settings;
    }
}
