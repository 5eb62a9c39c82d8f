package io.sparklog.door;

import io.sparklog.spec.PartlogException;

/** Serves a root to Kafka's clients: the main program of the door. */
public final class Serve {
  private Serve() {}

  /** Ends by SIGTERM, or with status 1 after a message on stderr. */
  public static void main(String[] arguments) throws InterruptedException {
    try {
      Door door = new Door(ServeConfig.of(arguments));
      System.out.println("Serving " + door.location() + " at " + door.address());
      System.out.flush();
      Runtime.getRuntime().addShutdownHook(new Thread(door::close, "door-end"));
    } catch (PartlogException e) {
      System.err.println(e.condition() + ": " + e.getMessage());
      System.exit(1);
    }
    Thread.currentThread().join();
  }
}
