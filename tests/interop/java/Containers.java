import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.kafka.ConfluentKafkaContainer;
import org.testcontainers.kafka.KafkaContainer;
import org.testcontainers.utility.DockerImageName;

/**
 * Starts an image with the containers for Kafka of testcontainers, and sends a record through each.
 *
 * <p>Arguments: the image. Prints a line for each container: its name, and the record.
 */
public final class Containers {
    private static final String TOPIC = "orders";

    private Containers() {}

    @SuppressWarnings({"deprecation", "resource"})
    public static void main(String[] arguments) {
        DockerImageName image = DockerImageName.parse(arguments[0]);
        DockerImageName apache = image.asCompatibleSubstituteFor("apache/kafka");
        DockerImageName confluent = image.asCompatibleSubstituteFor("confluentinc/cp-kafka");
        try (KafkaContainer kafka = new KafkaContainer(apache)) {
            kafka.start();
            exchange("KafkaContainer", kafka.getBootstrapServers());
        }
        try (ConfluentKafkaContainer kafka = new ConfluentKafkaContainer(confluent)) {
            kafka.start();
            exchange("ConfluentKafkaContainer", kafka.getBootstrapServers());
        }
        try (var kafka = new org.testcontainers.containers.KafkaContainer(confluent)) {
            kafka.start();
            exchange("deprecated", kafka.getBootstrapServers());
        }
        try (var kafka = new org.testcontainers.containers.KafkaContainer(confluent).withKraft()) {
            kafka.start();
            exchange("deprecated withKraft", kafka.getBootstrapServers());
        }
    }

    private static void exchange(String name, String bootstrap) {
        Map<String, Object> producing = Map.of("bootstrap.servers", bootstrap);
        StringSerializer text = new StringSerializer();
        try (var producer = new KafkaProducer<String, String>(producing, text, text)) {
            producer.send(new ProducerRecord<>(TOPIC, "through " + name));
        }
        Map<String, Object> consuming =
                Map.of("bootstrap.servers", bootstrap, "group.id", "g", "auto.offset.reset", "earliest");
        StringDeserializer read = new StringDeserializer();
        try (var consumer = new KafkaConsumer<String, String>(consuming, read, read)) {
            consumer.subscribe(List.of(TOPIC));
            ConsumerRecords<String, String> records = ConsumerRecords.empty();
            for (int tries = 0; records.isEmpty() && tries < 30; tries++) {
                records = consumer.poll(Duration.ofSeconds(1));
            }
            records.forEach(record -> System.out.println(name + "\t" + record.value()));
        }
    }
}
