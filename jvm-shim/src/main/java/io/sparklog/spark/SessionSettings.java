package io.sparklog.spark;

import io.sparklog.spec.Options;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.SparkSession;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;

/** Hadoop's settings, as the session of this thread has them. Their values may be secrets. */
public final class SessionSettings {
  private SessionSettings() {}

  /** Those of the session, with those among the options of a read or a write over them. */
  public static Iterable<Map.Entry<String, String>> with(Map<String, String> options) {
    Map<String, String> given = new TreeMap<>();
    options.forEach((option, value) -> {
      if (isSetting(option)) {
        given.put(option.equalsIgnoreCase(Options.MAX_REQUESTS) ? Options.MAX_REQUESTS : option, value);
      }
    });
    return SparkSession.active().sessionState().newHadoopConfWithOptions(Map$.MODULE$.from(CollectionConverters.asScala(given)));
  }

  /** Whether an option is a setting of the place that keeps a root. */
  public static boolean isSetting(String option) {
    return isOfHadoop(option) || option.equalsIgnoreCase(Options.MAX_REQUESTS);
  }

  /** Whether an option is a setting of a file system: users of Spark give these to a read or write of any format. */
  public static boolean isOfHadoop(String option) {
    return option.startsWith("fs.");
  }
}
