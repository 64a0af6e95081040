import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Asks Apache Kafka's authorizer. A line is "new", "acl", "remove", "ask" or "any", and its
 * arguments, with tabs in between; each question is answered with a line.
 */
public final class Authorizes {
    private record Client(KafkaPrincipal principal, InetAddress clientAddress)
            implements AuthorizableRequestContext {
        @Override
        public String listenerName() {
            return "L";
        }

        @Override
        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.SASL_PLAINTEXT;
        }

        @Override
        public int requestType() {
            return 0;
        }

        @Override
        public int requestVersion() {
            return 0;
        }

        @Override
        public String clientId() {
            return "c";
        }

        @Override
        public int correlationId() {
            return 1;
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StandardAuthorizer authorizer = null;
        Map<String, Uuid> ids = new HashMap<>();
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            switch (words[0]) {
                case "new" -> {
                    authorizer = new StandardAuthorizer();
                    authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
                    authorizer.configure(Map.of(
                            "super.users", words[1], "allow.everyone.if.no.acl.found", words[2]));
                    authorizer.completeInitialLoad();
                }
                case "acl" -> {
                    Uuid id = Uuid.randomUuid();
                    ids.put(words[1], id);
                    authorizer.addAcl(id, new StandardAcl(
                            ResourceType.fromCode(Byte.parseByte(words[2])),
                            words[3],
                            PatternType.fromCode(Byte.parseByte(words[4])),
                            words[5],
                            words[6],
                            AclOperation.fromCode(Byte.parseByte(words[7])),
                            AclPermissionType.fromCode(Byte.parseByte(words[8]))));
                }
                case "remove" -> authorizer.removeAcl(ids.remove(words[1]));
                default -> {
                    Client client = new Client(
                            principal(words[1]),
                            InetAddress.getByName(words[2]));
                    AclOperation operation = AclOperation.fromCode(Byte.parseByte(words[3]));
                    ResourceType type = ResourceType.fromCode(Byte.parseByte(words[4]));
                    AuthorizationResult result;
                    if (words[0].equals("any")) {
                        result = authorizer.authorizeByResourceType(client, operation, type);
                    } else {
                        ResourcePattern resource =
                                new ResourcePattern(type, words[5], PatternType.LITERAL);
                        Action action = new Action(operation, resource, 1, false, false);
                        result = authorizer.authorize(client, List.of(action)).get(0);
                    }
                    answers.append(result == AuthorizationResult.ALLOWED ? "1" : "0").append('\n');
                }
            }
        }
        System.out.print(answers);
    }

    private static KafkaPrincipal principal(String text) {
        int colon = text.indexOf(':');
        return new KafkaPrincipal(text.substring(0, colon), text.substring(colon + 1));
    }
}
