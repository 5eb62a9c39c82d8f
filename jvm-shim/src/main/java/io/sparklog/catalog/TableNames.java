package io.sparklog.catalog;

import io.sparklog.spark.SessionSettings;
import io.sparklog.spec.PartlogException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The names of a catalog: {@code orders}, {@code topics.orders} and {@code orders.commits} in a catalog that has a root; {@code
 * `/root`.orders} and {@code `/root`} in any. A first part with a slash is a root, since no name of a topic has a slash.
 */
final class TableNames {
  /**
   * The namespace of all topics. Spark's catalog API cannot list the content of an empty namespace, and takes a namespace called default
   * for its own.
   */
  static final String TOPICS = "topics";

  private final String catalog;
  private final String root;
  private final Map<String, String> settings = new HashMap<>();

  /** @throws PartlogException CATALOG_SETTING */
  TableNames(String catalog, CaseInsensitiveStringMap options) {
    this.catalog = catalog;
    this.root = options.get("root");
    options.asCaseSensitiveMap().forEach((key, value) -> {
      if (SessionSettings.isSetting(key)) {
        settings.put(key, value);
      } else if (!key.equalsIgnoreCase("root")) {
        throw PartlogException.of("CATALOG_SETTING", "catalog", catalog, "setting", "spark.sql.catalog." + catalog + "." + key);
      }
    });
  }

  /** Also without a root: the error names the missing root, and comes from this catalog and not from Spark. */
  static String[] defaultNamespace() {
    return new String[] {TOPICS};
  }

  boolean hasRoot() {
    return root != null;
  }

  /** Whether a namespace with a name is below a root, so that it can be looked up. */
  boolean isOfRoot(String[] namespace) {
    return hasRoot() || namespace[0].contains("/");
  }

  /** The thing that a table's name is about; empty if it cannot be one. @throws PartlogException CATALOG_WITHOUT_ROOT */
  Optional<CatalogTarget> table(Identifier identifier) {
    List<String> parts = new ArrayList<>(Arrays.asList(identifier.namespace()));
    parts.add(identifier.name());
    String path = takeRoot(parts, 2);
    String about = parts.size() < 2 ? null : parts.get(1).toLowerCase(Locale.ROOT);
    boolean isName = parts.size() < 2 || parts.size() == 2 && TopicInfo.NAMES.contains(about);
    Map<String, String> reached = new HashMap<>(settings);
    reached.putAll(FormatIdentifier.settingsOf(identifier));
    return isName ? Optional.of(new CatalogTarget(path, reached, parts.isEmpty() ? null : parts.get(0), about)) : Optional.empty();
  }

  /** The root, or the topic, whose tables are in a namespace; empty if the namespace does not exist. @throws as {@link #table} */
  Optional<CatalogTarget> namespace(String[] namespace) {
    List<String> parts = new ArrayList<>(Arrays.asList(namespace));
    String path = takeRoot(parts, 1);
    return parts.size() < 2
        ? Optional.of(new CatalogTarget(path, settings, parts.isEmpty() ? null : parts.get(0), null))
        : Optional.empty();
  }

  /** Takes away the parts before the topic. @param least how many parts there are if {@code topics} is not the topic itself */
  private String takeRoot(List<String> parts, int least) {
    if (parts.size() >= least && parts.get(0).equals(TOPICS)) {
      parts.remove(0);
    }
    if (!parts.isEmpty() && parts.get(0).contains("/")) {
      return parts.remove(0);
    }
    if (root == null) {
      String name = parts.isEmpty() ? "the empty name" : String.join(".", parts);
      throw PartlogException.of("CATALOG_WITHOUT_ROOT", "catalog", catalog, "name", name);
    }
    return root;
  }
}
