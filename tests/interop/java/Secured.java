import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends ten records and reads them, once for each group of lines key=value, which an empty line ends. Prints
 * "ok", or the error.
 */
public class Secured {
    public static void main(String[] arguments) throws Exception {
        java.util.Scanner input = new java.util.Scanner(System.in, "UTF-8");
        while (input.hasNextLine()) {
            Properties settings = new Properties();
            for (String line; input.hasNextLine() && !(line = input.nextLine()).isEmpty(); ) {
                int at = line.indexOf('=');
                settings.setProperty(line.substring(0, at), line.substring(at + 1));
            }
            try {
                System.out.println(run(settings));
            } catch (Exception e) {
                Throwable cause = e.getCause() == null ? e : e.getCause();
                System.out.println(cause.getClass().getSimpleName() + ": " + cause.getMessage());
            }
        }
    }

    private static String run(Properties settings) throws Exception {
        String topic = settings.getProperty("topic");
        settings.setProperty("max.block.ms", "10000");
        settings.setProperty("default.api.timeout.ms", "10000");
        List<String> sent = new ArrayList<>();
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < 10; n++) {
                sent.add(topic + n);
                producer.send(new ProducerRecord<>(topic, 0, null, topic + n)).get();
            }
        }
        List<String> read = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            for (int n = 0; n < 50 && read.size() < 10; n++) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    read.add(record.value());
                }
            }
        }
        return sent.equals(read) ? "ok" : "read " + read;
    }
}
