package io.sparklog.storage;

import java.io.Serializable;
import java.util.Collections;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * All that a store is made from: the driver sends it to its tasks, as a store itself cannot be sent. Equal ones open stores that do not
 * differ.
 *
 * @param root as {@link Stores#open} takes it
 * @param settings the settings that a store needs in every process beside its root, such as a Hadoop configuration or credentials: empty
 *     for a disk. Messages never show their values.
 */
public record StoreRef(String root, SortedMap<String, String> settings) implements Serializable {
  public StoreRef {
    TreeMap<String, String> copy = new TreeMap<>();
    copy.putAll(settings);
    settings = Collections.unmodifiableSortedMap(copy);
  }

  /** Without settings. */
  public StoreRef(String root) {
    this(root, Collections.emptySortedMap());
  }

  /** The root, and the names of the settings: a value may be a secret. */
  @Override
  public String toString() {
    return settings.isEmpty() ? root : root + " with " + String.join(", ", settings.keySet());
  }
}
