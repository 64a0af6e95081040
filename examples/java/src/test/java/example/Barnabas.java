package example;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.ProcessBuilder.Redirect;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A broker for the tests of a class, with a clock that they move and faults that they order.
 *
 * <p>It is a process, {@code barnabas serve --test-control}, which ends after the last test. Where
 * the environment has BARNABAS_CONTROL, such as http://kafka:8099, the broker that runs there is
 * used; BARNABAS names the program, if it is not on the path.
 */
final class Barnabas implements BeforeAllCallback, AfterAllCallback {

  private static final ObjectMapper JSON = new ObjectMapper();

  private final HttpClient http = HttpClient.newHttpClient();
  private String url = System.getenv("BARNABAS_CONTROL");
  private Process process;

  @Override
  public void beforeAll(ExtensionContext context) throws IOException {
    if (url != null) return;
    String program = System.getenv().getOrDefault("BARNABAS", "barnabas");
    List<String> command = new ArrayList<>(List.of(program, "serve", "--log-level", "WARNING"));
    // Port 0 is any free one; the first line of the output says where the control is.
    command.addAll(List.of("--test-control", "0", "--set", "listeners=PLAINTEXT://127.0.0.1:0"));
    process = new ProcessBuilder(command).redirectError(Redirect.INHERIT).start();
    Runtime.getRuntime().addShutdownHook(new Thread(process::destroy));
    url = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
    if (url == null) throw new IOException(program + " has ended: see its messages above");
  }

  @Override
  public void afterAll(ExtensionContext context) throws InterruptedException {
    if (process == null) return;
    process.destroy();
    process.waitFor();
  }

  String bootstrapServers() {
    return ask("GET", "/v1/broker", null).get("bootstrap_servers").asText();
  }

  void createTopic(String name, Map<String, ?> config) {
    ask("PUT", "/v1/topics/" + name, Map.of("partitions", 1, "config", config));
  }

  /** The values of all records that a consumer would get. */
  List<String> values(String topic) {
    JsonNode records = ask("GET", "/v1/topics/" + topic + "/records", null).get("records");
    return records.findValuesAsText("value");
  }

  /** Moves the clock; all that falls due on the way has happened when this returns. */
  void advance(Duration step) {
    ask("POST", "/v1/clock/advance", Map.of("milliseconds", step.toMillis()));
  }

  /** Lets requests fail, and returns the id of the fault. */
  int fail(String api, String error, int times) {
    Map<String, ?> fault = Map.of("kind", "fail", "api", api, "error", error, "times", times);
    return ask("POST", "/v1/faults", fault).get("id").asInt();
  }

  /** The number of requests that a fault has met. */
  int count(int fault) {
    return ask("GET", "/v1/faults/" + fault, null).get("count").asInt();
  }

  JsonNode ask(String method, String path, Object body) {
    try {
      String json = body == null ? "" : JSON.writeValueAsString(body);
      HttpRequest request =
          HttpRequest.newBuilder(URI.create(url + path))
              .header("Content-Type", "application/json")
              .method(method, BodyPublishers.ofString(json))
              .build();
      var answer = http.send(request, BodyHandlers.ofString());
      if (answer.statusCode() >= 300) throw new IllegalStateException(answer.body());
      return JSON.readTree(answer.body());
    } catch (IOException | InterruptedException error) {
      throw new IllegalStateException(method + " " + url + path, error);
    }
  }
}
