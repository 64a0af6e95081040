import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Optional;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Copies a topic with Flink, in transactions that are committed with its checkpoints. A program
 * that is started again goes on from the last checkpoint of the one before it.
 */
public class FlinkCopier {
  public static void main(String[] arguments) throws Exception {
    String bootstrap = arguments[0], topic = arguments[1], target = arguments[2];
    Path checkpoints = Path.of("checkpoints").toAbsolutePath();
    var settings = new Configuration();
    settings.setString("execution.checkpointing.interval", "500ms");
    settings.setString("execution.checkpointing.dir", checkpoints.toUri().toString());
    settings.setString(
        "execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
    settings.setString("execution.checkpointing.tolerable-failed-checkpoints", "100");
    settings.setString("restart-strategy.type", "fixed-delay");
    settings.setString("restart-strategy.fixed-delay.attempts", "1000");
    settings.setString("restart-strategy.fixed-delay.delay", "200ms");
    last(checkpoints)
        .ifPresent(path -> settings.setString("execution.state-recovery.path", path.toString()));
    var environment = StreamExecutionEnvironment.getExecutionEnvironment(settings);
    environment.setParallelism(1);
    var source =
        KafkaSource.<String>builder()
            .setBootstrapServers(bootstrap)
            .setTopics(topic)
            .setGroupId("copier")
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setValueOnlyDeserializer(new SimpleStringSchema())
            .build();
    var sink =
        KafkaSink.<String>builder()
            .setBootstrapServers(bootstrap)
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix("copier")
            .setProperty("transaction.timeout.ms", "60000")
            .setRecordSerializer(
                KafkaRecordSerializationSchema.<String>builder()
                    .setTopic(target)
                    .setValueSerializationSchema(new SimpleStringSchema())
                    .build())
            .build();
    environment.fromSource(source, WatermarkStrategy.noWatermarks(), "numbers").sinkTo(sink);
    environment.execute("copier");
  }

  /** The checkpoint that was completed last, of any program before this one. */
  private static Optional<Path> last(Path checkpoints) throws IOException {
    if (!Files.exists(checkpoints)) return Optional.empty();
    try (var files = Files.walk(checkpoints)) {
      return files
          .filter(file -> file.endsWith("_metadata"))
          .max(Comparator.comparing(file -> file.toFile().lastModified()))
          .map(Path::getParent);
    }
  }
}
