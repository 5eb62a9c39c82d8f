package io.sparklog.storage;

import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;

/** Where the servers of {@code make test-stores} are: system properties, which Maven hands to the tests. */
final class StoreSettings {
  private StoreSettings() {}

  /**
   * A root on a server that no other test has.
   *
   * @param property its value is the URI of a folder; each further one that begins with it and a dot is a setting of Hadoop
   * @param more settings
   */
  static StoreRef newRoot(String property, Map<String, String> more) {
    TreeMap<String, String> settings = new TreeMap<>(more);
    for (String name : System.getProperties().stringPropertyNames()) {
      if (name.startsWith(property + ".")) {
        settings.put(name.substring(property.length() + 1), System.getProperty(name));
      }
    }
    return new StoreRef(System.getProperty(property) + "/" + UUID.randomUUID() + "/odd %41 ü+?#*", settings);
  }

  /** The store of {@code ref}, whose client soon gives up a request without an answer, so that a test sees it. */
  static S3Store impatient(StoreRef ref, int attempts, int retries) {
    TreeMap<String, String> settings = new TreeMap<>(ref.settings());
    settings.put("fs.s3a.attempts.maximum", String.valueOf(attempts));
    settings.put("fs.s3a.retry.limit", String.valueOf(retries));
    settings.put("fs.s3a.retry.interval", "10ms");
    settings.put("fs.s3a.retry.throttle.limit", String.valueOf(retries));
    settings.put("fs.s3a.retry.throttle.interval", "10ms");
    return S3Store.open(new StoreRef(ref.root(), settings));
  }
}
