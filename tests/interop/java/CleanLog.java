import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Apache Kafka's own cleaner, driven by lines of text.
 *
 * <p>A line is one cleaning, fields separated by tabs: directory of the log, time in ms, first dirty
 * offset, uncleanable offset, slots of the offset map, bytes of the buffer, and as many configs as
 * there are. The answer is a line as well: the next dirty offset and the counters, or what was
 * thrown.
 */
public final class CleanLog {
    private static final int DAY_MS = 86_400_000;
    private static final int ENTRY_BYTES = 24;
    private static final double LOAD_FACTOR = 0.75;

    private CleanLog() {}

    public static void main(String[] args) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(clean(scheduler, line.split("\t")));
        }
        System.out.flush();
        // What it is writing it writes to the end, or an exit would leave a temporary file.
        scheduler.shutdown();
        System.exit(0);
    }

    private static String clean(KafkaScheduler scheduler, String[] job) throws Exception {
        Time time = new StillTime(Long.parseLong(job[1]));
        UnifiedLog log = open(scheduler, time, job);
        LogToClean cleanable =
                new LogToClean(log, Long.parseLong(job[2]), Long.parseLong(job[3]), false);
        int buffer = Integer.parseInt(job[5]);
        Cleaner cleaner = new Cleaner(
                0,
                new SkimpyOffsetMap(Integer.parseInt(job[4]) * ENTRY_BYTES),
                buffer,
                buffer,
                LOAD_FACTOR,
                new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "throttle", "bytes", time),
                time,
                partition -> {});
        String answer;
        try {
            Map.Entry<Long, CleanerStats> cleaned = cleaner.clean(cleanable);
            CleanerStats stats = cleaned.getValue();
            answer = String.join(
                    "\t",
                    "" + cleaned.getKey(),
                    "" + stats.mapMessagesRead(),
                    "" + stats.messagesRead(),
                    "" + stats.invalidMessagesRead(),
                    "" + stats.messagesWritten(),
                    "" + stats.bytesRead(),
                    "" + stats.bytesWritten());
        } catch (Exception error) {
            answer = "error\t" + error.toString().replaceAll("\\s", " ");
        }
        log.close();
        return answer;
    }

    private static UnifiedLog open(KafkaScheduler scheduler, Time time, String[] job)
            throws Exception {
        Properties configs = new Properties();
        for (int i = 6; i < job.length; i++) {
            String[] pair = job[i].split("=", 2);
            configs.put(pair[0], pair[1]);
        }
        UnifiedLog log = UnifiedLog.create(
                new File(job[0]),
                new LogConfig(configs),
                0L,
                0L,
                scheduler,
                new BrokerTopicStats(),
                time,
                DAY_MS,
                new ProducerStateManagerConfig(Integer.MAX_VALUE, false),
                DAY_MS,
                new LogDirFailureChannel(1),
                true,
                Optional.empty());
        log.updateHighWatermark(log.logEndOffset());
        return log;
    }

    /** The time of one cleaning. */
    private record StillTime(long milliseconds) implements Time {
        @Override
        public long nanoseconds() {
            return milliseconds * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object obj, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }
}
