package io.sparklog.catalog;

import io.sparklog.spark.SessionSettings;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The name of the target of one load or save in the format. Spark hands this very object back to the catalog, so it carries the options.
 * Only if a save may create a topic does Spark use the parts of the name.
 */
final class FormatIdentifier implements Identifier {
  /**
   * The last identifier that this thread made: a save runs on the thread that began it. It is recognized by the identity of its name
   * object, which Spark hands on unchanged. So another save does not get its options, nor does a statement after a failed save of the same
   * topic.
   */
  private static final ThreadLocal<FormatIdentifier> LAST = new ThreadLocal<>();

  private final CaseInsensitiveStringMap options;
  private final String[] parts;

  /** @param root in full */
  FormatIdentifier(String root, CaseInsensitiveStringMap options) {
    this.options = options;
    this.parts = options.containsKey("topic") ? new String[] {root, object(options.get("topic"))} : new String[] {object(root)};
  }

  private static String object(String text) {
    return new String(text.toCharArray());
  }

  /** An identifier for the load or save that this thread begins. */
  static FormatIdentifier begun(String root, CaseInsensitiveStringMap options) {
    FormatIdentifier identifier = new FormatIdentifier(root, options);
    LAST.set(identifier);
    return identifier;
  }

  /**
   * The settings of a file system among the options of the save that this thread has begun, if it is about {@code name}. If a save may
   * create a topic, Spark hands on only the parts of the name. This identifier is looked up before that.
   */
  static Map<String, String> settingsOf(Identifier name) {
    return isBegun(name) ? LAST.get().settings() : Map.of();
  }

  /** Whether {@code name} is of the load or save in the format that this thread has begun. */
  static boolean isBegun(Identifier name) {
    FormatIdentifier last = LAST.get();
    return last != null && last.name() == name.name();
  }

  /** The load or save of {@code name} has its options now. */
  static void ended(Identifier name) {
    if (isBegun(name)) {
      LAST.remove();
    }
  }

  private Map<String, String> settings() {
    Map<String, String> settings = new HashMap<>(options.asCaseSensitiveMap());
    settings.keySet().removeIf(option -> !SessionSettings.isSetting(option));
    return settings;
  }

  CaseInsensitiveStringMap options() {
    return options;
  }

  @Override
  public String[] namespace() {
    return Arrays.copyOf(parts, parts.length - 1);
  }

  @Override
  public String name() {
    return parts[parts.length - 1];
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof FormatIdentifier same && Arrays.equals(parts, same.parts) && options.equals(same.options);
  }

  @Override
  public int hashCode() {
    return 31 * Arrays.hashCode(parts) + options.hashCode();
  }

  @Override
  public String toString() {
    return Identifier.of(namespace(), name()).toString();
  }
}
