import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/**
 * The orders in which collections give out what was put into them.
 *
 * <p>A line is a kind of collection, its capacity, and steps of a letter and a key each; the answer
 * is what an iterator gives in the end, or what a queue has given.
 */
public final class Orders {
    private Orders() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.out.println(Runtime.version().feature());
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            List<String> steps = Arrays.asList(words[2].split(" "));
            List<?> answer =
                    switch (words[0]) {
                        case "numbers" -> map(new HashMap<>(capacity(words)), steps, Integer::valueOf);
                        case "strings" -> map(new HashMap<>(capacity(words)), steps, key -> key);
                        case "timeline" -> timeline(steps);
                        case "copy" -> copy(steps);
                        default -> queue(steps);
                    };
            System.out.println(
                    answer.stream().map(Object::toString).collect(Collectors.joining(" ")));
        }
    }

    private static int capacity(String[] words) {
        return Integer.parseInt(words[1]);
    }

    private static <K> List<K> map(
            Map<K, String> map, List<String> steps, Function<String, K> keyOf) {
        for (String step : steps) {
            K key = keyOf.apply(step.substring(1));
            switch (step.charAt(0)) {
                case 'p' -> map.put(key, "");
                case 'c' -> map.computeIfAbsent(key, __ -> "");
                default -> map.remove(key);
            }
        }
        return new ArrayList<>(map.keySet());
    }

    private static List<String> timeline(List<String> steps) {
        return map(
                new TimelineHashMap<>(new SnapshotRegistry(new LogContext()), 0),
                steps,
                key -> key);
    }

    /** Steps of "k" are in the set that is copied. */
    private static List<Integer> copy(List<String> steps) {
        List<Integer> copied = new ArrayList<>();
        List<String> later = new ArrayList<>();
        for (String step : steps) {
            if (step.charAt(0) == 'k') {
                copied.add(Integer.valueOf(step.substring(1)));
            } else {
                later.add(step);
            }
        }
        Set<Integer> set = new HashSet<>(copied);
        for (String step : later) {
            Integer number = Integer.valueOf(step.substring(1));
            if (step.charAt(0) == 'p') {
                set.add(number);
            } else {
                set.remove(number);
            }
        }
        return new ArrayList<>(set);
    }

    private static List<String> queue(List<String> steps) {
        PriorityQueue<String> queue =
                new PriorityQueue<>(Comparator.comparingInt(item -> item.charAt(0)));
        List<String> given = new ArrayList<>();
        for (String step : steps) {
            if (step.charAt(0) == 'p') {
                queue.add(step.substring(1));
            } else {
                given.add(String.valueOf(queue.poll()));
            }
        }
        return given;
    }
}
