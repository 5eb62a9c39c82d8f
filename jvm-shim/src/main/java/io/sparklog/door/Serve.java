package io.sparklog.door;

import io.sparklog.spec.PartlogException;

/** Serves a root to Kafka's clients: the main program of the door. */
public final class Serve {
  private Serve() {}

  /** Ends by SIGTERM or as end.when.unused.ms says, or with status 1 after a message on stderr. */
  public static void main(String[] arguments) throws InterruptedException {
    try {
      ServeConfig config = ServeConfig.of(arguments);
      Door door = new Door(config);
      Runtime.getRuntime().addShutdownHook(new Thread(door::close, "door-end"));
      System.out.println("Serving " + door.location() + " at " + door.address());
      System.out.println("Kafka's clients " + (config.readOnly() ? "read" : "read and write") + " its topics with bootstrap.servers="
          + door.address() + ". Ctrl+C ends it, after the requests that it has.");
      System.out.flush();
      door.awaitUnused(config.number("end.when.unused.ms"));
      System.exit(0);
    } catch (PartlogException e) {
      System.err.println(e.condition() + ": " + e.getMessage());
      System.exit(1);
    }
  }
}
