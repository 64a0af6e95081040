import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Timer;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/**
 * Asks Apache Kafka's quota managers. A line is "new", "quota", "use", "back", "strict" or "lax",
 * and its arguments, with tabs in between; "use", "strict" and "lax" are answered with a line.
 */
public final class Quotas {
    private static final class Given implements Time {
        long ms = 0;

        @Override
        public long milliseconds() {
            return ms;
        }

        @Override
        public long nanoseconds() {
            return ms * 1_000_000;
        }

        @Override
        public long hiResClockMs() {
            return ms;
        }

        @Override
        public void sleep(long many) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object what, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    private static Session session(String user) throws Exception {
        return new Session(new KafkaPrincipal("User", user), InetAddress.getByName("127.0.0.1"));
    }

    private static Optional<ClientQuotaEntity.ConfigEntity> user(String word) {
        return switch (word) {
            case "-" -> Optional.empty();
            case "*" -> Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY);
            default -> Optional.of(new ClientQuotaManager.UserEntity(word));
        };
    }

    private static Optional<ClientQuotaEntity.ConfigEntity> client(String word) {
        return switch (word) {
            case "-" -> Optional.empty();
            case "*" -> Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID);
            default -> Optional.of(new ClientQuotaManager.ClientIdEntity(word));
        };
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Given time = new Given();
        ClientQuotaManager rates = null;
        ControllerMutationQuotaManager mutations = null;
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            switch (words[0]) {
                case "new" -> {
                    ClientQuotaManagerConfig config = new ClientQuotaManagerConfig(
                            Integer.parseInt(words[1]), Integer.parseInt(words[2]));
                    rates = new ClientQuotaManager(
                            config, new Metrics(), QuotaType.PRODUCE, time, "");
                    mutations = new ControllerMutationQuotaManager(
                            config, new Metrics(), time, "", Optional.empty());
                }
                case "quota" -> {
                    Optional<Quota> quota = words[3].equals("-")
                            ? Optional.empty()
                            : Optional.of(Quota.upperBound(Double.parseDouble(words[3])));
                    rates.updateQuota(user(words[1]), client(words[2]), quota);
                    mutations.updateQuota(user(words[1]), client(words[2]), quota);
                }
                case "use" -> {
                    time.ms = Long.parseLong(words[1]);
                    int wait = rates.maybeRecordAndGetThrottleTimeMs(
                            session(words[2]), words[3], Double.parseDouble(words[4]), time.ms);
                    double most = rates.maxValueInQuotaWindow(session(words[2]), words[3]);
                    answers.append(wait).append(' ').append(most).append('\n');
                }
                case "back" -> {
                    time.ms = Long.parseLong(words[1]);
                    if (rates.quotasEnabled()) {
                        rates.unrecordQuotaSensor(
                                session(words[2]), words[3], Double.parseDouble(words[4]), time.ms);
                    }
                }
                default -> {
                    time.ms = Long.parseLong(words[1]);
                    ControllerMutationQuota quota = words[0].equals("strict")
                            ? mutations.newStrictQuotaFor(session(words[2]), words[3])
                            : mutations.newPermissiveQuotaFor(session(words[2]), words[3]);
                    String told = "taken";
                    try {
                        quota.record(Double.parseDouble(words[4]));
                    } catch (ThrottlingQuotaExceededException refused) {
                        told = "refused";
                    }
                    answers.append(told).append(' ').append(quota.throttleTime()).append('\n');
                }
            }
        }
        System.out.print(answers);
        System.out.flush();
        System.exit(0);
    }
}
