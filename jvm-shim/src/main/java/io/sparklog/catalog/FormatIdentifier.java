package io.sparklog.catalog;

import java.util.Arrays;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The name of what one load or save in the format is about. Spark hands this very object back to the catalog, so it carries the options;
 * only where a save may create a topic does Spark go by the parts of the name.
 */
final class FormatIdentifier implements Identifier {
  private final CaseInsensitiveStringMap options;
  private final String[] parts;

  /** @param root in full */
  FormatIdentifier(String root, CaseInsensitiveStringMap options) {
    this.options = options;
    this.parts = options.containsKey("topic") ? new String[] {root, options.get("topic")} : new String[] {root};
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
