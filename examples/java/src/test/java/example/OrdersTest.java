package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

class OrdersTest {

  @RegisterExtension static final Barnabas broker = new Barnabas();

  private static void send(String topic, String value) throws Exception {
    Map<String, Object> config = Map.of("bootstrap.servers", broker.bootstrapServers());
    try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
      producer.send(new ProducerRecord<>(topic, value)).get(30, TimeUnit.SECONDS);
    }
  }

  @Test
  void ordersAreGoneAfterAWeek() throws Exception {
    broker.createTopic("invoices", Map.of("retention.ms", Duration.ofDays(7).toMillis()));
    send("invoices", "three castles");
    assertEquals(List.of("three castles"), broker.values("invoices"));

    broker.advance(Duration.ofDays(8));

    assertEquals(List.of(), broker.values("invoices"));
  }

  @Test
  void aProducerTriesAgain() throws Exception {
    broker.createTopic("retried", Map.of());
    int fault = broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER", 2);

    send("retried", "one castle");

    assertEquals(2, broker.count(fault));
    assertEquals(List.of("one castle"), broker.values("retried"));
  }

  @Test
  void ordersAreBilledInTheirOrder() {
    broker.createTopic("orders", Map.of());
    List<?> orders = List.of(Map.of("value", "one castle"), Map.of("value", "two castles"));
    broker.ask("POST", "/v1/topics/orders/records", Map.of("records", orders));

    List<String> billed = new ArrayList<>();
    Map<String, Object> config =
        Map.of(
            "bootstrap.servers", broker.bootstrapServers(),
            "group.id", "billing",
            "auto.offset.reset", "earliest");
    try (var consumer =
        new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of("orders"));
      while (billed.size() < 2) {
        consumer.poll(Duration.ofSeconds(30)).forEach(record -> billed.add(record.value()));
      }
      consumer.commitSync();
    }

    assertEquals(List.of("one castle", "two castles"), billed);
    assertEquals(0, broker.ask("GET", "/v1/groups/billing", null).get("lag").asInt());
  }
}
