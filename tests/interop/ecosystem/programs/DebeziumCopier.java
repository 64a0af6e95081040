import io.debezium.embedded.Connect;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.RecordChangeEvent;
import io.debezium.engine.format.ChangeEventFormat;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/**
 * Copies a topic with Debezium's engine, whose offsets are in a third topic. A connector reads the
 * first topic in the place of a database; the engine hands its changes on in batches, and commits
 * their offsets after the copies are acknowledged.
 */
public class DebeziumCopier {
  private static final int PARTITIONS = 4;

  public static void main(String[] arguments) {
    String bootstrap = arguments[0], source = arguments[1], target = arguments[2];
    var settings = new Properties();
    settings.put("name", "copier");
    settings.put("connector.class", Numbers.class.getName());
    settings.put("topic.prefix", "copier");
    settings.put("source", source);
    settings.put("bootstrap.servers", bootstrap);
    settings.put("offset.storage", "org.apache.kafka.connect.storage.KafkaOffsetBackingStore");
    settings.put("offset.storage.topic", "copier-offsets");
    settings.put("offset.storage.partitions", "1");
    settings.put("offset.storage.replication.factor", "1");
    settings.put("offset.flush.interval.ms", "300");
    var producer =
        new KafkaProducer<String, String>(
            Map.of("bootstrap.servers", bootstrap),
            new StringSerializer(),
            new StringSerializer());
    DebeziumEngine.create(ChangeEventFormat.of(Connect.class))
        .using(settings)
        .using(DebeziumCopier.class.getClassLoader())
        .using((success, message, error) -> System.err.println(message + ": " + error))
        .notifying(
            (List<RecordChangeEvent<SourceRecord>> batch,
                DebeziumEngine.RecordCommitter<RecordChangeEvent<SourceRecord>> committer) -> {
              copy(producer, target, batch);
              for (var event : batch) committer.markProcessed(event);
              committer.markBatchFinished();
            })
        .build()
        .run();
    System.exit(1);
  }

  private static void copy(
      KafkaProducer<String, String> producer,
      String target,
      List<RecordChangeEvent<SourceRecord>> batch) {
    var sent = new ArrayList<Future<?>>();
    for (var event : batch)
      sent.add(producer.send(new ProducerRecord<>(target, (String) event.record().value())));
    try {
      for (var each : sent) each.get();
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  /** A connector with one task. */
  public static class Numbers extends SourceConnector {
    private Map<String, String> settings;

    @Override
    public void start(Map<String, String> given) {
      settings = given;
    }

    @Override
    public void stop() {}

    @Override
    public Class<? extends Task> taskClass() {
      return NumbersTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
      return List.of(settings);
    }

    @Override
    public ConfigDef config() {
      return new ConfigDef();
    }

    @Override
    public String version() {
      return "1";
    }
  }

  /** Reads every partition from the offset that the engine knows. */
  public static class NumbersTask extends SourceTask {
    private KafkaConsumer<String, String> consumer;

    @Override
    public void start(Map<String, String> given) {
      var settings = Map.<String, Object>of("bootstrap.servers", given.get("bootstrap.servers"));
      consumer =
          new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
      var partitions = new ArrayList<TopicPartition>();
      for (int number = 0; number < PARTITIONS; number++)
        partitions.add(new TopicPartition(given.get("source"), number));
      consumer.assign(partitions);
      for (var partition : partitions) {
        var known = context.offsetStorageReader().offset(Map.of("number", partition.partition()));
        long next = known == null ? 0 : ((Number) known.get("next")).longValue();
        consumer.seek(partition, next);
      }
    }

    @Override
    public List<SourceRecord> poll() {
      var records = new ArrayList<SourceRecord>();
      for (var found : consumer.poll(Duration.ofMillis(100))) {
        var partition = Map.of("number", found.partition());
        var offset = Map.of("next", found.offset() + 1);
        records.add(
            new SourceRecord(partition, offset, "numbers", Schema.STRING_SCHEMA, found.value()));
      }
      return records;
    }

    @Override
    public void stop() {
      consumer.close();
    }

    @Override
    public String version() {
      return "1";
    }
  }
}
