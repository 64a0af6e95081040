import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.tools.DumpLogSegments;

/**
 * Runs Apache Kafka's dump tool, many times in one virtual machine.
 *
 * The one argument is a directory with a file "commands": a run in each line, its arguments
 * separated by tabs. Of the nth line, "n.out" and "n.err" are what the tool prints, and "n.status"
 * is the exit status.
 */
public final class Dumps {
    private static final class Exited extends RuntimeException {
        private final int status;

        Exited(int status) {
            this.status = status;
        }
    }

    public static void main(String[] args) throws IOException {
        Path directory = Path.of(args[0]);
        Exit.setExitProcedure((status, message) -> {
            throw new Exited(status);
        });
        List<String> commands = Files.readAllLines(directory.resolve("commands"));
        for (int number = 0; number < commands.size(); number++) {
            String line = commands.get(number);
            String[] command = line.isEmpty() ? new String[0] : line.split("\t", -1);
            String name = directory.resolve(Integer.toString(number)).toString();
            try (PrintStream out = stream(name + ".out"); PrintStream err = stream(name + ".err")) {
                System.setOut(out);
                System.setErr(err);
                Files.writeString(Path.of(name + ".status"), Integer.toString(run(command)));
            }
        }
    }

    private static PrintStream stream(String name) throws IOException {
        return new PrintStream(new FileOutputStream(name), false, StandardCharsets.UTF_8);
    }

    private static int run(String[] command) {
        try {
            DumpLogSegments.main(command);
            return 0;
        } catch (Exited exited) {
            return exited.status;
        } catch (Throwable thrown) {
            System.err.print("Exception in thread \"main\" ");
            thrown.printStackTrace(System.err);
            return 1;
        }
    }
}
