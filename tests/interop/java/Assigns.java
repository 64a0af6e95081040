import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.StringJoiner;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordHelpers;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.generated.ShareGroupMemberMetadataValue;
import org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMemberKey;
import org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTargetAssignmentMemberKey;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.ModernGroup;
import org.apache.kafka.coordinator.group.modern.TargetAssignmentBuilder;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.coordinator.group.modern.share.ShareGroup;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupMember;
import org.apache.kafka.coordinator.group.streams.StreamsGroup;
import org.apache.kafka.coordinator.group.streams.StreamsGroupMember;
import org.apache.kafka.coordinator.group.streams.TasksTuple;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredInternalTopic;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredSubtopology;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredTopology;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Groups of Apache Kafka's coordinator, driven by lines of words with tabs in between.
 *
 * <p>A member that joins or changes is answered with a line: the target assignments that are new,
 * in the order of the records that Kafka writes of them.
 */
public final class Assigns {
    private Assigns() {}

    private record Topic(String name, Uuid id, int partitionCount)
            implements CoordinatorMetadataImage.TopicMetadata {
        @Override
        public List<String> partitionRacks(int partition) {
            return List.of();
        }
    }

    private static final class Topics implements CoordinatorMetadataImage {
        final Map<String, TopicMetadata> byName = new HashMap<>();
        final Map<Uuid, TopicMetadata> byId = new HashMap<>();

        void put(Topic topic) {
            byName.put(topic.name(), topic);
            byId.put(topic.id(), topic);
        }

        void remove(String name) {
            byId.remove(byName.remove(name).id());
        }

        @Override
        public Set<Uuid> topicIds() {
            return byId.keySet();
        }

        @Override
        public Set<String> topicNames() {
            return byName.keySet();
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(String name) {
            return Optional.ofNullable(byName.get(name));
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(Uuid id) {
            return Optional.ofNullable(byId.get(id));
        }

        @Override
        public CoordinatorMetadataDelta emptyDelta() {
            return CoordinatorMetadataDelta.EMPTY;
        }

        @Override
        public long version() {
            return 1;
        }

        @Override
        public boolean isEmpty() {
            return byId.isEmpty();
        }
    }

    /** A group of one of the three types. */
    private interface Group {
        /** A member joins or changes. The answer is what is new. */
        String heartbeat(String[] words);

        void leave(String memberId);
    }

    private static final Topics topics = new Topics();
    private static final Map<Uuid, Set<Integer>> assignable = new HashMap<>();
    private static final SortedMap<String, ConfiguredSubtopology> subtopologies = new TreeMap<>();

    private static List<String> names(String joined) {
        return joined.isEmpty() ? List.of() : Arrays.asList(joined.split(","));
    }

    private static String orNull(String word) {
        return word.equals("-") ? null : word;
    }

    private static String hex(Uuid id) {
        return String.format(
                "%016x%016x", id.getMostSignificantBits(), id.getLeastSignificantBits());
    }

    private static String numbers(List<Integer> numbers) {
        StringJoiner joined = new StringJoiner(",");
        numbers.forEach(number -> joined.add(number.toString()));
        return joined.toString();
    }

    private static final class Consumers implements Group {
        private final ConsumerGroup group =
                new ConsumerGroup(
                        new LogContext(), new SnapshotRegistry(new LogContext()), "group");
        private final PartitionAssignor assignor;

        Consumers(String name) {
            assignor = name.equals("range") ? new RangeAssignor() : new UniformAssignor();
        }

        @Override
        public String heartbeat(String[] words) {
            String id = words[1];
            String instanceId = orNull(words[2]);
            String replaced = group.staticMemberId(instanceId);
            ConsumerGroupMember old =
                    group.hasMember(id)
                            ? group.getOrMaybeCreateMember(id, false)
                            : replaced == null
                                    ? null
                                    : group.getOrMaybeCreateMember(replaced, false);
            ConsumerGroupMember updated =
                    new ConsumerGroupMember.Builder(id)
                            .setInstanceId(instanceId)
                            .setRackId(orNull(words[3]))
                            .setClientId("client")
                            .setClientHost("host")
                            .maybeUpdateSubscribedTopicNames(Optional.of(names(words[4])))
                            .build();
            boolean isNew = old == null;
            TargetAssignmentBuilder.ConsumerTargetAssignmentBuilder builder =
                    new TargetAssignmentBuilder.ConsumerTargetAssignmentBuilder(
                                    "group", 2, assignor)
                            .withTime(Time.SYSTEM)
                            .withMembers(group.members())
                            .withStaticMembers(group.staticMembers())
                            .withSubscriptionType(
                                    ModernGroup.subscriptionType(
                                            group.computeSubscribedTopicNames(old, updated),
                                            group.numMembers() + (isNew ? 1 : 0)))
                            .withTargetAssignment(group.targetAssignment())
                            .withInvertedTargetAssignment(group.invertedTargetAssignment())
                            .withMetadataImage(topics)
                            .addOrUpdateMember(id, updated);
            if (replaced != null && !replaced.equals(id)) {
                builder.removeMember(replaced);
            }
            List<CoordinatorRecord> records = builder.build().records();
            if (replaced != null && !replaced.equals(id)) {
                group.removeTargetAssignment(replaced);
                group.removeMember(replaced);
            }
            ConsumerGroupMember stored =
                    new ConsumerGroupMember.Builder(id)
                            .updateWith(
                                    (ConsumerGroupMemberMetadataValue)
                                            GroupCoordinatorRecordHelpers
                                                    .newConsumerGroupMemberSubscriptionRecord(
                                                            "group", updated)
                                                    .value()
                                                    .message())
                            .build();
            group.updateMember(stored);
            group.updateMember(stored);
            StringJoiner answer = new StringJoiner("\t");
            for (CoordinatorRecord record : records) {
                if (record.key() instanceof ConsumerGroupTargetAssignmentMemberKey key) {
                    ConsumerGroupTargetAssignmentMemberValue value =
                            (ConsumerGroupTargetAssignmentMemberValue) record.value().message();
                    StringJoiner parts = new StringJoiner(";");
                    value.topicPartitions()
                            .forEach(
                                    t -> parts.add(hex(t.topicId()) + ":" + numbers(t.partitions())));
                    answer.add(key.memberId() + "=" + parts);
                    group.updateTargetAssignment(key.memberId(), Assignment.fromRecord(value));
                }
            }
            return answer.toString();
        }

        @Override
        public void leave(String memberId) {
            group.removeTargetAssignment(memberId);
            group.removeMember(memberId);
        }
    }

    private static final class Shares implements Group {
        private final ShareGroup group =
                new ShareGroup(new SnapshotRegistry(new LogContext()), "group");
        private final PartitionAssignor assignor = new SimpleAssignor();

        @Override
        public String heartbeat(String[] words) {
            String id = words[1];
            ShareGroupMember old =
                    group.hasMember(id) ? group.getOrMaybeCreateMember(id, false) : null;
            ShareGroupMember updated =
                    new ShareGroupMember.Builder(id)
                            .setRackId(orNull(words[3]))
                            .setClientId("client")
                            .setClientHost("host")
                            .maybeUpdateSubscribedTopicNames(Optional.of(names(words[4])))
                            .build();
            List<CoordinatorRecord> records =
                    new TargetAssignmentBuilder.ShareTargetAssignmentBuilder("group", 2, assignor)
                            .withTime(Time.SYSTEM)
                            .withMembers(group.members())
                            .withSubscriptionType(
                                    ModernGroup.subscriptionType(
                                            group.computeSubscribedTopicNames(old, updated),
                                            group.numMembers() + (old == null ? 1 : 0)))
                            .withTargetAssignment(group.targetAssignment())
                            .withTopicAssignablePartitionsMap(assignable)
                            .withInvertedTargetAssignment(group.invertedTargetAssignment())
                            .withMetadataImage(topics)
                            .addOrUpdateMember(id, updated)
                            .build()
                            .records();
            ShareGroupMember stored =
                    new ShareGroupMember.Builder(id)
                            .updateWith(
                                    (ShareGroupMemberMetadataValue)
                                            GroupCoordinatorRecordHelpers
                                                    .newShareGroupMemberSubscriptionRecord(
                                                            "group", updated)
                                                    .value()
                                                    .message())
                            .build();
            group.updateMember(stored);
            group.updateMember(stored);
            StringJoiner answer = new StringJoiner("\t");
            for (CoordinatorRecord record : records) {
                if (record.key() instanceof ShareGroupTargetAssignmentMemberKey key) {
                    ShareGroupTargetAssignmentMemberValue value =
                            (ShareGroupTargetAssignmentMemberValue) record.value().message();
                    StringJoiner parts = new StringJoiner(";");
                    value.topicPartitions()
                            .forEach(
                                    t -> parts.add(hex(t.topicId()) + ":" + numbers(t.partitions())));
                    answer.add(key.memberId() + "=" + parts);
                    group.updateTargetAssignment(key.memberId(), Assignment.fromRecord(value));
                }
            }
            return answer.toString();
        }

        @Override
        public void leave(String memberId) {
            group.removeTargetAssignment(memberId);
            group.removeMember(memberId);
        }
    }

    private static final class Streams implements Group {
        private final StreamsGroup group =
                new StreamsGroup(
                        new LogContext(), new SnapshotRegistry(new LogContext()), "group");
        private final Map<String, String> configs;

        Streams(String standbyReplicas) {
            configs = Map.of("num.standby.replicas", standbyReplicas);
        }

        private static String tasks(List<StreamsGroupTargetAssignmentMemberValue.TaskIds> tasks) {
            StringJoiner parts = new StringJoiner(";");
            tasks.forEach(t -> parts.add(t.subtopologyId() + ":" + numbers(t.partitions())));
            return parts.toString();
        }

        @Override
        public String heartbeat(String[] words) {
            String id = words[1];
            StreamsGroupMember updated =
                    new StreamsGroupMember.Builder(id)
                            .setMemberEpoch(1)
                            .setPreviousMemberEpoch(1)
                            .setInstanceId(null)
                            .setRackId(orNull(words[3]))
                            .setClientId("client")
                            .setClientHost("host")
                            .setRebalanceTimeoutMs(1)
                            .setTopologyEpoch(0)
                            .setProcessId(words[2])
                            .setClientTags(Map.of())
                            .setUserEndpoint(null)
                            .setState(
                                    org.apache.kafka.coordinator.group.streams.MemberState.STABLE)
                            .setAssignedTasks(
                                    org.apache.kafka.coordinator.group.streams.TasksTupleWithEpochs
                                            .EMPTY)
                            .setTasksPendingRevocation(
                                    org.apache.kafka.coordinator.group.streams.TasksTupleWithEpochs
                                            .EMPTY)
                            .build();
            List<CoordinatorRecord> records =
                    new org.apache.kafka.coordinator.group.streams.TargetAssignmentBuilder(
                                    "group", 2, new StickyTaskAssignor(), configs)
                            .withTime(Time.SYSTEM)
                            .withMembers(group.members())
                            .withTopology(
                                    new ConfiguredTopology(
                                            0,
                                            0,
                                            Optional.of(new TreeMap<>(subtopologies)),
                                            Map.of(),
                                            Optional.empty()))
                            .withStaticMembers(group.staticMembers())
                            .withMetadataImage(topics)
                            .withTargetAssignment(group.targetAssignment())
                            .addOrUpdateMember(id, updated)
                            .build()
                            .records();
            group.updateMember(updated);
            group.updateMember(updated);
            StringJoiner answer = new StringJoiner("\t");
            for (CoordinatorRecord record : records) {
                if (record.key() instanceof StreamsGroupTargetAssignmentMemberKey key) {
                    StreamsGroupTargetAssignmentMemberValue value =
                            (StreamsGroupTargetAssignmentMemberValue) record.value().message();
                    answer.add(
                            String.join(
                                    "|",
                                    key.memberId() + "=" + tasks(value.activeTasks()),
                                    tasks(value.standbyTasks()),
                                    tasks(value.warmupTasks())));
                    group.updateTargetAssignment(
                            key.memberId(), TasksTuple.fromTargetAssignmentRecord(value));
                }
            }
            return answer.toString();
        }

        @Override
        public void leave(String memberId) {
            group.removeTargetAssignment(memberId);
            group.removeMember(memberId);
        }
    }

    private static Group group(String assignor, String standbyReplicas) {
        topics.byName.clear();
        topics.byId.clear();
        assignable.clear();
        subtopologies.clear();
        return switch (assignor) {
            case "simple" -> new Shares();
            case "sticky" -> new Streams(standbyReplicas);
            default -> new Consumers(assignor);
        };
    }

    private static void assignable(Uuid id, String joined) {
        Set<Integer> numbers = assignable.computeIfAbsent(id, __ -> new HashSet<>());
        names(joined).forEach(number -> numbers.add(Integer.valueOf(number)));
    }

    private static void subtopology(String[] words) {
        Map<String, ConfiguredInternalTopic> changelogs = new HashMap<>();
        if (words[3].equals("stateful")) {
            changelogs.put(
                    "changelog",
                    new ConfiguredInternalTopic("changelog", 1, Optional.empty(), Map.of()));
        }
        subtopologies.put(
                words[1],
                new ConfiguredSubtopology(
                        Integer.parseInt(words[2]), Set.of(), Map.of(), Set.of(), changelogs));
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        out.println(Runtime.version().feature());
        Group group = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            switch (words[0]) {
                case "group" -> group = group(words[1], words[2]);
                case "topic" -> topics.put(new Topic(words[1], id(words[2]), Integer.parseInt(words[3])));
                case "delete" -> topics.remove(words[1]);
                case "assignable" -> assignable(id(words[1]), words[2]);
                case "subtopology" -> subtopology(words);
                case "member" -> out.println(group.heartbeat(words));
                case "leave" -> group.leave(words[1]);
                default -> throw new IllegalArgumentException(line);
            }
        }
        out.flush();
    }

    private static Uuid id(String hex) {
        return new Uuid(
                Long.parseUnsignedLong(hex.substring(0, 16), 16),
                Long.parseUnsignedLong(hex.substring(16), 16));
    }
}
