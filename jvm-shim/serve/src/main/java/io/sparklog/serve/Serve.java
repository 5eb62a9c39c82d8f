package io.sparklog.serve;

import io.sparklog.serve.security.Credentials;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.ServerSettings;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Serves a root to Kafka's clients: the main program of the server. */
public final class Serve {
  /** Log4j's name for the place of its settings. */
  private static final String LOG_SETTINGS = "log4j2.configurationFile";

  /** By the kind of an error, the exit status of the command line: docs/guide/command-line.md. */
  private static final Map<String, Integer> STATUS = Map.of("call", 2, "data", 3, "upgrade", 4);

  private static final int TRY_AGAIN = 5;

  /** As of a process that has an error of its own code. */
  private static final int BUG = 70;

  private Serve() {}

  /**
   * Ends by SIGTERM, at the end of its standard input if {@code --end-with-input} is given, as end.when.unused.ms says, or after a message
   * on stderr. {@code --verifiers USER} makes the lines of a user for the file of verifiers, from the password on stdin, and
   * {@code --settings} lists the settings.
   */
  public static void main(String[] arguments) throws InterruptedException, IOException {
    try {
      if (arguments.length == 2 && arguments[0].equals("--verifiers")) {
        System.out.print(Credentials.lines(arguments[1], new String(System.in.readAllBytes(), StandardCharsets.UTF_8).strip()));
        return;
      }
      if (arguments.length == 1 && arguments[0].equals("--settings")) {
        ServerSettings.defaults().forEach((key, value) -> System.out.println(key + "=" + value));
        return;
      }
      if (System.getenv("LOG4J_CONFIGURATION_FILE") == null && System.getProperty("log4j.configurationFile") == null
          && System.getProperty(LOG_SETTINGS) == null) {
        System.setProperty(LOG_SETTINGS, "classpath:io/sparklog/serve/log4j2.properties");
      }
      ServeConfig config = ServeConfig.of(arguments);
      RootServer server = new RootServer(config);
      Runtime.getRuntime().addShutdownHook(new Thread(server::close, "server-end"));
      if (config.endsWithInput()) {
        endWithInput();
      }
      System.out.println("Serving " + server.location() + " at " + server.address());
      System.out.println("Kafka's clients " + (config.readOnly() ? "read" : "read and write") + " its topics at " + server.listeners()
          + ". Ctrl+C ends it, after the requests that it has.");
      server.metrics().ifPresent(address -> System.out.println("Metrics for Prometheus are at http://" + address + "/metrics"));
      System.out.flush();
      server.awaitUnused(config.number("end.when.unused.ms"));
      System.exit(0);
    } catch (PartlogException e) {
      System.err.println(e.getMessage());
      System.exit(STATUS.getOrDefault(e.kind(), TRY_AGAIN));
    } catch (RuntimeException | Error e) { // Threads of the network would keep the process alive, and it would serve nothing.
      e.printStackTrace();
      System.exit(BUG);
    }
  }

  /** The program that started this one keeps the input open for as long as it lives, and the kernel ends the input. */
  private static void endWithInput() {
    Thread reader = new Thread(() -> {
      try {
        System.in.transferTo(OutputStream.nullOutputStream());
      } catch (IOException e) {
        // It has ended too.
      }
      System.exit(0);
    }, "server-input");
    reader.setDaemon(true);
    reader.start();
  }
}
