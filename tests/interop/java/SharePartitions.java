import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.StringJoiner;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import kafka.server.share.SharePartition;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ShareFetchResponseData.AcquiredRecords;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.share.PersisterStateBatchCombiner;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.fetch.InFlightBatch;
import org.apache.kafka.server.share.fetch.InFlightState;
import org.apache.kafka.server.share.persister.*;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

/**
 * Kafka's SharePartition, driven by lines of text: one command each, answered by what it gave and
 * by the state afterwards.
 */
public final class SharePartitions {
    private static final TopicIdPartition PARTITION = new TopicIdPartition(new Uuid(1, 2), 0, "t");

    private static long now = 0;
    private static final List<TimerTaskEntry> timers = new ArrayList<>();
    private static final List<Runnable[]> writes = new ArrayList<>();
    private static List<String> log = new ArrayList<>();
    private static PartitionAllData stored;
    private static Object share;

    private SharePartitions() {}

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("process.roles", "broker,controller");
        properties.put("node.id", "1");
        properties.put("controller.quorum.voters", "1@localhost:1");
        properties.put("controller.listener.names", "C");
        properties.put("listeners", "PLAINTEXT://:2,C://:1");
        properties.put("listener.security.protocol.map", "C:PLAINTEXT,PLAINTEXT:PLAINTEXT");
        properties.put("group.share.min.record.lock.duration.ms", "1000");
        KafkaConfig config = KafkaConfig.fromProps(properties);
        GroupConfigManager groups =
                new GroupConfigManager(
                        Map.of(), config.groupCoordinatorConfig(), config.shareGroupConfig());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.startsWith("combine ")) {
                System.out.println(combined(line.split(" ")));
                continue;
            }
            log = new ArrayList<>();
            String answer;
            try {
                answer = answer(line.split(" "), groups);
            } catch (InvocationTargetException e) {
                answer = "error:" + e.getCause().getClass().getSimpleName();
            }
            System.out.println(answer + " | " + String.join(",", log) + " | " + state());
        }
    }

    private static String answer(String[] words, GroupConfigManager groups) throws Exception {
        switch (words[0]) {
            case "new":
                create(words, groups);
                return "ok";
            case "acquire":
                return acquire(words);
            case "ack":
                List<ShareAcknowledgementBatch> batches = new ArrayList<>();
                for (int i = 2; i < words.length; i++) {
                    String[] parts = words[i].split(":");
                    List<Byte> types = new ArrayList<>();
                    for (char type : parts[2].toCharArray()) {
                        types.add((byte) (type - '0'));
                    }
                    batches.add(
                            new ShareAcknowledgementBatch(
                                    Long.parseLong(parts[0]), Long.parseLong(parts[1]), types));
                }
                return outcome(call("acknowledge", words[1], batches));
            case "release":
                return outcome(call("releaseAcquiredRecords", words[1]));
            case "start":
                call("updateCacheAndOffsets", Long.parseLong(words[1]));
                return "ok";
            case "time":
                now += Long.parseLong(words[1]);
                for (TimerTaskEntry entry : List.copyOf(timers)) {
                    if (entry.expirationMs <= now) {
                        timers.remove(entry);
                        if (!entry.cancelled()) {
                            try {
                                entry.timerTask.run();
                            } catch (NullPointerException e) {
                                // There is no replica manager to tell.
                            }
                        }
                    }
                }
                return "ok";
            case "written":
                int which = words[1].equals("1") ? 0 : 1;
                for (Runnable[] write : List.copyOf(writes)) {
                    writes.remove(write);
                    write[which].run();
                }
                return "ok";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String combined(String[] words) {
        int plus = List.of(words).indexOf("+");
        StringJoiner joiner = new StringJoiner(" ");
        for (PersisterStateBatch each :
                new PersisterStateBatchCombiner(
                                batches(words, 2, plus),
                                batches(words, plus + 1, words.length),
                                Long.parseLong(words[1]))
                        .combineStateBatches()) {
            joiner.add(
                    each.firstOffset()
                            + ":"
                            + each.lastOffset()
                            + ":"
                            + each.deliveryState()
                            + ":"
                            + each.deliveryCount());
        }
        return joiner.toString();
    }

    private static List<PersisterStateBatch> batches(String[] words, int from, int to) {
        List<PersisterStateBatch> batches = new ArrayList<>();
        for (int i = from; i < to; i++) {
            String[] parts = words[i].split(":");
            batches.add(
                    new PersisterStateBatch(
                            Long.parseLong(parts[0]),
                            Long.parseLong(parts[1]),
                            Byte.parseByte(parts[2]),
                            Short.parseShort(parts[3])));
        }
        return batches;
    }

    private static void create(String[] words, GroupConfigManager groups) throws Exception {
        now = 0;
        timers.clear();
        writes.clear();
        List<PersisterStateBatch> batches = batches(words, 4, words.length);
        stored =
                PartitionFactory.newPartitionAllData(
                        0, 1, Long.parseLong(words[1]), (short) 0, null, batches);
        Constructor<?> constructor = null;
        for (Constructor<?> each : SharePartition.class.getDeclaredConstructors()) {
            if (each.getParameterCount() == 12) {
                constructor = each;
            }
        }
        constructor.setAccessible(true);
        share =
                constructor.newInstance(
                        "g",
                        PARTITION,
                        0,
                        Integer.parseInt(words[2]),
                        Integer.parseInt(words[3]),
                        10_000,
                        new Timers(),
                        new Now(),
                        new Kept(),
                        (ReplicaManager) null,
                        groups,
                        null);
        ((CompletableFuture<?>) call("maybeInitialize")).get();
    }

    private static String acquire(String[] words) throws Exception {
        List<FetchResponseData.AbortedTransaction> aborted = new ArrayList<>();
        for (int i = 7; i < words.length; i++) {
            String[] parts = words[i].split(":");
            aborted.add(
                    new FetchResponseData.AbortedTransaction()
                            .setProducerId(Long.parseLong(parts[0]))
                            .setFirstOffset(Long.parseLong(parts[1])));
        }
        byte[] bytes = HexFormat.of().parseHex(words[6]);
        FetchPartitionData data =
                new FetchPartitionData(
                        Errors.NONE,
                        1_000_000,
                        0,
                        MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)),
                        Optional.empty(),
                        OptionalLong.empty(),
                        Optional.of(aborted),
                        OptionalInt.empty(),
                        false);
        Object acquired =
                call(
                        "acquire",
                        words[1],
                        ShareAcquireMode.forId(Byte.parseByte(words[2])),
                        Integer.parseInt(words[3]),
                        Integer.parseInt(words[4]),
                        Long.parseLong(words[5]),
                        data,
                        FetchIsolation.TXN_COMMITTED);
        StringJoiner joiner = new StringJoiner(",");
        Method records = acquired.getClass().getMethod("acquiredRecords");
        for (Object each : (List<?>) records.invoke(acquired)) {
            AcquiredRecords one = (AcquiredRecords) each;
            joiner.add(one.firstOffset() + ":" + one.lastOffset() + ":" + one.deliveryCount());
        }
        return "acquired " + joiner;
    }

    private static String outcome(Object future) {
        CompletableFuture<?> done = (CompletableFuture<?>) future;
        if (!done.isDone()) {
            return "writing";
        }
        try {
            done.get();
            return "ok";
        } catch (Exception e) {
            return "error:" + Errors.forException(e.getCause()).code();
        }
    }

    private static Object call(String name, Object... arguments) throws Exception {
        for (Method method : SharePartition.class.getDeclaredMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == arguments.length) {
                method.setAccessible(true);
                return method.invoke(share, arguments);
            }
        }
        throw new NoSuchMethodException(name);
    }

    @SuppressWarnings("unchecked")
    private static String state() throws Exception {
        StringBuilder text = new StringBuilder();
        text.append(call("nextFetchOffset")).append(' ');
        text.append(call("startOffset")).append(' ').append(call("endOffset")).append(' ');
        text.append(call("deliveryCompleteCount"));
        for (InFlightBatch batch :
                ((NavigableMap<Long, InFlightBatch>) call("cachedState")).values()) {
            if (batch.offsetState() == null) {
                text.append(" [").append(batch.firstOffset()).append('-');
                text.append(batch.lastOffset()).append(' ').append(batch.batchState().id);
                text.append(' ').append(batch.batchDeliveryCount()).append(' ');
                text.append(batch.batchMemberId());
                text.append(batch.batchHasOngoingStateTransition() ? "*]" : "]");
                continue;
            }
            text.append(" {");
            for (Map.Entry<Long, InFlightState> each : batch.offsetState().entrySet()) {
                InFlightState one = each.getValue();
                text.append('(').append(each.getKey()).append(' ').append(one.state().id);
                text.append(' ').append(one.deliveryCount()).append(' ').append(one.memberId());
                text.append(one.hasOngoingStateTransition() ? "*)" : ")");
            }
            text.append('}');
        }
        return text.toString();
    }

    private static final class Timers implements Timer {
        @Override
        public void add(TimerTask task) {
            timers.add(new TimerTaskEntry(task, now + task.delayMs));
        }

        @Override
        public boolean advanceClock(long timeoutMs) {
            return false;
        }

        @Override
        public int size() {
            return timers.size();
        }

        @Override
        public void close() {}
    }

    private static final class Now implements Time {
        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1_000_000;
        }

        @Override
        public void sleep(long ms) {}

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {}
    }

    private static final class Kept implements Persister {
        @Override
        public CompletableFuture<InitializeShareGroupStateResult> initializeState(
                InitializeShareGroupStateParameters request) {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletableFuture<ReadShareGroupStateResult> readState(
                ReadShareGroupStateParameters request) {
            return CompletableFuture.completedFuture(
                    new ReadShareGroupStateResult.Builder()
                            .setTopicsData(
                                    List.of(new TopicData<>(PARTITION.topicId(), List.of(stored))))
                            .build());
        }

        @Override
        public CompletableFuture<WriteShareGroupStateResult> writeState(
                WriteShareGroupStateParameters request) {
            CompletableFuture<WriteShareGroupStateResult> future = new CompletableFuture<>();
            PartitionStateBatchData data =
                    request.groupTopicPartitionData().topicsData().get(0).partitions().get(0);
            StringBuilder text = new StringBuilder();
            text.append(data.startOffset()).append('/').append(data.deliveryCompleteCount());
            for (PersisterStateBatch batch : data.stateBatches()) {
                for (long offset = batch.firstOffset(); offset <= batch.lastOffset(); offset++) {
                    text.append('/').append(offset).append(':').append(batch.deliveryState());
                    text.append(':').append(batch.deliveryCount());
                }
            }
            log.add(text.toString());
            writes.add(
                    new Runnable[] {
                        () -> future.complete(result((short) 0)),
                        () -> future.complete(result(Errors.FENCED_STATE_EPOCH.code()))
                    });
            return future;
        }

        private static WriteShareGroupStateResult result(short code) {
            return new WriteShareGroupStateResult.Builder()
                    .setTopicsData(
                            List.of(
                                    new TopicData<>(
                                            PARTITION.topicId(),
                                            List.of(
                                                    PartitionFactory.newPartitionErrorData(
                                                            0, code, null)))))
                    .build();
        }

        @Override
        public CompletableFuture<DeleteShareGroupStateResult> deleteState(
                DeleteShareGroupStateParameters request) {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(
                ReadShareGroupStateSummaryParameters request) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void stop() {}
    }
}
