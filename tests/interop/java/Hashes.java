import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.Utils;

/**
 * Hashes of topics, as Apache Kafka's coordinator computes them.
 *
 * <p>A line has the two halves of a topic's id, its name, and the racks of each partition with
 * commas in between, all with tabs in between. It is answered with the hash of the topic. An empty
 * line is answered with the hash of all topics since the last one.
 */
public final class Hashes {
    private Hashes() {}

    private record Topic(String name, Uuid id, List<List<String>> racks)
            implements CoordinatorMetadataImage.TopicMetadata {
        @Override
        public int partitionCount() {
            return racks.size();
        }

        @Override
        public List<String> partitionRacks(int partition) {
            return new ArrayList<>(racks.get(partition));
        }
    }

    private record Image(Topic topic) implements CoordinatorMetadataImage {
        @Override
        public Set<Uuid> topicIds() {
            return Set.of(topic.id());
        }

        @Override
        public Set<String> topicNames() {
            return Set.of(topic.name());
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(String name) {
            return name.equals(topic.name()) ? Optional.of(topic) : Optional.empty();
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(Uuid id) {
            return id.equals(topic.id()) ? Optional.of(topic) : Optional.empty();
        }

        @Override
        public CoordinatorMetadataDelta emptyDelta() {
            throw new UnsupportedOperationException();
        }

        @Override
        public long version() {
            return 0;
        }

        @Override
        public boolean isEmpty() {
            return false;
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        Map<String, Long> hashes = new HashMap<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isEmpty()) {
                out.println(Utils.computeGroupHash(hashes));
                hashes.clear();
                continue;
            }
            String[] words = line.split("\t", -1);
            Uuid id = new Uuid(Long.parseLong(words[0]), Long.parseLong(words[1]));
            List<List<String>> racks = new ArrayList<>();
            for (int index = 3; index < words.length; index++) {
                racks.add(words[index].isEmpty() ? List.of() : List.of(words[index].split(",")));
            }
            Topic topic = new Topic(words[2], id, racks);
            long hash = Utils.computeTopicHash(topic.name(), new Image(topic));
            hashes.put(topic.name(), hash);
            out.println(hash);
        }
        out.flush();
    }
}
