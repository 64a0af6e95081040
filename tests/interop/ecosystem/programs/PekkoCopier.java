import com.typesafe.config.ConfigFactory;
import java.time.Duration;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.kafka.CommitterSettings;
import org.apache.pekko.kafka.ConsumerSettings;
import org.apache.pekko.kafka.ProducerMessage;
import org.apache.pekko.kafka.ProducerSettings;
import org.apache.pekko.kafka.Subscriptions;
import org.apache.pekko.kafka.javadsl.Committer;
import org.apache.pekko.kafka.javadsl.Consumer;
import org.apache.pekko.kafka.javadsl.Producer;
import org.apache.pekko.stream.RestartSettings;
import org.apache.pekko.stream.javadsl.RestartSource;
import org.apache.pekko.stream.javadsl.Sink;

/** Copies a topic with Pekko: a record's offset is committed after its copy is acknowledged. */
public class PekkoCopier {
  public static void main(String[] arguments) {
    String bootstrap = arguments[0], source = arguments[1], target = arguments[2];
    var system = ActorSystem.create("copier", ConfigFactory.load());
    var receiving =
        ConsumerSettings.create(system, new ByteArrayDeserializer(), new ByteArrayDeserializer())
            .withBootstrapServers(bootstrap)
            .withGroupId("copier")
            .withProperty("auto.offset.reset", "earliest")
            .withProperty("session.timeout.ms", "2000")
            .withProperty("heartbeat.interval.ms", "500");
    var sending =
        ProducerSettings.create(system, new ByteArraySerializer(), new ByteArraySerializer())
            .withBootstrapServers(bootstrap);
    var committing = CommitterSettings.create(system).withMaxInterval(Duration.ofMillis(300));
    var restarts = RestartSettings.create(Duration.ofMillis(200), Duration.ofSeconds(1), 0.2);
    RestartSource.onFailuresWithBackoff(
            restarts,
            () ->
                Consumer.committableSource(receiving, Subscriptions.topics(source))
                    .map(
                        message ->
                            ProducerMessage.single(
                                new ProducerRecord<byte[], byte[]>(target, message.record().value()),
                                message.committableOffset()))
                    .via(Producer.flexiFlow(sending))
                    .map(result -> result.passThrough())
                    .via(Committer.flow(committing)))
        .runWith(Sink.ignore(), system);
  }
}
