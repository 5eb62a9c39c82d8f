package io.sparklog.spark;

import io.sparklog.spec.PartlogException;
import org.apache.spark.sql.SparkSession;

/** The connector itself, as classes that a JVM has loaded. */
public final class Connector {
  /** Spark was started with it: that cannot change while the JVM lives. */
  private static volatile boolean isOfApplication;

  private Connector() {}

  /**
   * Refuses a connector that came into a running session by ADD JAR. Its classes belong to that session, while tasks have their own copy of
   * them. Reads would work, and every write would end in a ClassCastException when the driver gets the report of a task.
   *
   * @throws PartlogException CONNECTOR_MISSING
   */
  public static void requireOfApplication() {
    if (isOfApplication
        || !(SparkSession.getActiveSession().getOrElse(() -> null) instanceof org.apache.spark.sql.classic.SparkSession session)) {
      return;
    }
    // Jars that a session adds are in this class loader or below it; jars of Spark's start are above.
    ClassLoader application = session.sharedState().jarClassLoader().getParent();
    try {
      isOfApplication = Class.forName(Connector.class.getName(), false, application) == Connector.class;
    } catch (ClassNotFoundException e) {
      isOfApplication = false;
    }
    if (!isOfApplication) {
      throw PartlogException.of("CONNECTOR_MISSING", "jar", Connector.class.getProtectionDomain().getCodeSource().getLocation().getPath());
    }
  }
}
