import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A transactional producer that does what its arguments say.
 *
 * <p>Arguments: bootstrap servers, transactional id, topic, partitions, group, then one word for
 * each transaction: {@code commit}, {@code abort}, or {@code leave}, which ends the process in the
 * middle. Transaction n sends "n-p" to each partition p, and offset n + 1 of partition 0 for the
 * group.
 */
public final class Transactions {
    private Transactions() {}

    public static void main(String[] args) {
        int partitions = Integer.parseInt(args[3]);
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", args[0],
                "transactional.id", args[1],
                "max.block.ms", 30_000);
        KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        for (int n = 0; n + 5 < args.length; n++) {
            producer.beginTransaction();
            for (int p = 0; p < partitions; p++) {
                producer.send(new ProducerRecord<>(args[2], p, null, n + "-" + p));
            }
            producer.sendOffsetsToTransaction(
                    Map.of(new TopicPartition(args[2], 0), new OffsetAndMetadata(n + 1)),
                    new ConsumerGroupMetadata(args[4]));
            producer.flush();
            switch (args[n + 5]) {
                case "commit" -> producer.commitTransaction();
                case "abort" -> producer.abortTransaction();
                case "leave" -> Runtime.getRuntime().halt(0);
                default -> throw new IllegalArgumentException(List.of(args).toString());
            }
        }
        producer.close();
    }
}
