import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Function;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Apache Kafka's command-line tools, many in one virtual machine and several at a time.
 *
 * Requests are lines of standard input, answers lines of standard output, both in JSON.
 * {"id": 1, "class": "a.Tool", "arguments": ["--list"], "given": "its standard input"} runs a tool
 * and is answered by {"id": 1, "status": 0, "out": "...", "err": "..."} once it has ended;
 * {"id": 1, "interrupt": true} ends it as a signal would.
 *
 * A tool finds all as it would in a machine of its own: its streams, static variables as they were
 * compiled, and an exit that runs its shutdown hooks and after which nothing is printed.
 */
public final class Toolbox {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream ANSWERS = System.out;
    private static final InputStream REQUESTS = System.in;

    public static void main(String[] args) throws IOException {
        // With direct encoders Log4j fills one buffer for all threads, and whoever comes first
        // writes out the lines of others as well.
        System.setProperty("log4j2.enable.direct.encoders", "false");
        System.setOut(routed(run -> run.out));
        System.setErr(routed(run -> run.err));
        System.setIn(new Given());
        Exit.setExitProcedure((status, message) -> Run.CURRENT.get().exit(status));
        Exit.setHaltProcedure((status, message) -> Run.CURRENT.get().exit(status));
        Exit.setShutdownHookAdder((name, hook) -> Run.CURRENT.get().hooks.add(hook));
        Map<Long, Run> runs = new ConcurrentHashMap<>();
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(REQUESTS, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode request = JSON.readTree(line);
            long id = request.get("id").asLong();
            if (request.has("interrupt")) {
                runs.get(id).interrupt();
            } else {
                Run run = new Run(request);
                runs.put(id, run);
                run.thread.start();
            }
        }
        System.exit(0);
    }

    private static PrintStream routed(Function<Run, OutputStream> target) {
        OutputStream route = new OutputStream() {
            @Override
            public void write(int one) throws IOException {
                write(new byte[] {(byte) one}, 0, 1);
            }

            @Override
            public void write(byte[] bytes, int start, int length) throws IOException {
                Run run = Run.CURRENT.get();
                if (run != null && !run.isOver) {
                    target.apply(run).write(bytes, start, length);
                }
            }
        };
        return new PrintStream(route, true, StandardCharsets.UTF_8);
    }

    /** The standard input of whoever reads. */
    private static final class Given extends InputStream {
        @Override
        public int read() {
            return Run.CURRENT.get().given.read();
        }

        @Override
        public int read(byte[] bytes, int start, int length) {
            return Run.CURRENT.get().given.read(bytes, start, length);
        }
    }

    /** Ends the thread that wanted to end the machine. */
    private static final class Exited extends Error {
        Exited() {
            super("exited", null, false, false);
        }
    }

    /** One run of a tool, with every thread that it starts. */
    private static final class Run implements Runnable {
        static final InheritableThreadLocal<Run> CURRENT = new InheritableThreadLocal<>();

        final JsonNode request;
        final ByteArrayInputStream given;
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final ByteArrayOutputStream err = new ByteArrayOutputStream();
        final List<Runnable> hooks = new CopyOnWriteArrayList<>();
        final Thread thread = new Thread(this, "main");
        private int status;
        private volatile boolean isInterrupted;
        private volatile boolean isOver;

        Run(JsonNode request) {
            this.request = request;
            byte[] bytes = request.get("given").asText().getBytes(StandardCharsets.UTF_8);
            this.given = new ByteArrayInputStream(bytes);
        }

        @Override
        public void run() {
            CURRENT.set(this);
            String tool = request.get("class").asText();
            try (URLClassLoader loader = new FreshTools(Class.forName(tool))) {
                Thread.currentThread().setContextClassLoader(loader);
                String[] arguments = JSON.convertValue(request.get("arguments"), String[].class);
                loader.loadClass(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
                if (!isInterrupted) {
                    exit(0);
                }
            } catch (InvocationTargetException thrown) {
                if (!isOver) {
                    System.err.print("Exception in thread \"main\" ");
                    thrown.getCause().printStackTrace();
                    finish(1);
                }
            } catch (Exited exited) {
                // Its answer has been given.
            } catch (ReflectiveOperationException | IOException impossible) {
                throw new AssertionError(impossible);
            }
        }

        /** What System.exit does in a machine of its own. */
        void exit(int wanted) {
            if (!isOver) {
                runHooks();
                finish(wanted);
            }
            throw new Exited();
        }

        /** What a signal does: the hooks run beside the tool, which may see its end or not. */
        void interrupt() {
            isInterrupted = true;
            Thread waiter = new Thread(() -> {
                CURRENT.set(this);
                runHooks();
                finish(143);
            });
            waiter.start();
        }

        private void runHooks() {
            for (Runnable hook : hooks) {
                Thread runner = new Thread(hook);
                runner.start();
                try {
                    runner.join();
                } catch (InterruptedException impossible) {
                    throw new AssertionError(impossible);
                }
            }
        }

        private synchronized void finish(int wanted) {
            if (isOver) {
                return;
            }
            System.out.flush();
            System.err.flush();
            isOver = true;
            status = wanted;
            var answer = JSON.createObjectNode();
            answer.put("id", request.get("id").asLong());
            answer.put("status", status);
            answer.put("out", out.toString(StandardCharsets.UTF_8));
            answer.put("err", err.toString(StandardCharsets.UTF_8));
            ANSWERS.println(answer);
            ANSWERS.flush();
        }
    }

    /** Loads the classes of the tools anew, and shares all others. */
    private static final class FreshTools extends URLClassLoader {
        FreshTools(Class<?> tool) {
            super(new URL[] {tool.getProtectionDomain().getCodeSource().getLocation()});
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            boolean isTool =
                name.startsWith("org.apache.kafka.tools.")
                    && !name.startsWith("org.apache.kafka.tools.api.");
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                if (loaded == null) {
                    loaded = isTool ? findClass(name) : getParent().loadClass(name);
                }
                return loaded;
            }
        }
    }
}
