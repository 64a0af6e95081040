import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.KafkaMessageListenerContainer;
import org.springframework.kafka.listener.MessageListener;
import org.springframework.kafka.transaction.KafkaTransactionManager;

/** Copies a topic with Spring Kafka, in transactions: copies and offsets are committed together. */
public class SpringCopier {
  public static void main(String[] arguments) {
    String bootstrap = arguments[0], source = arguments[1], target = arguments[2];
    Map<String, Object> sending = new HashMap<>();
    sending.put("bootstrap.servers", bootstrap);
    sending.put("key.serializer", ByteArraySerializer.class);
    sending.put("value.serializer", ByteArraySerializer.class);
    sending.put("transaction.timeout.ms", 4000);
    var producers = new DefaultKafkaProducerFactory<byte[], byte[]>(sending);
    producers.setTransactionIdPrefix("copier-");
    var template = new KafkaTemplate<>(producers);

    Map<String, Object> receiving = new HashMap<>();
    receiving.put("bootstrap.servers", bootstrap);
    receiving.put("key.deserializer", ByteArrayDeserializer.class);
    receiving.put("value.deserializer", ByteArrayDeserializer.class);
    receiving.put("group.id", "copier");
    receiving.put("auto.offset.reset", "earliest");
    receiving.put("isolation.level", "read_committed");
    receiving.put("session.timeout.ms", 2000);
    receiving.put("heartbeat.interval.ms", 500);
    var properties = new ContainerProperties(source);
    properties.setKafkaAwareTransactionManager(new KafkaTransactionManager<>(producers));
    MessageListener<byte[], byte[]> copy = record -> template.send(target, record.value());
    properties.setMessageListener(copy);
    var consumers = new DefaultKafkaConsumerFactory<byte[], byte[]>(receiving);
    new KafkaMessageListenerContainer<>(consumers, properties).start();
  }
}
