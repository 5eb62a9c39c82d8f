package io.sparklog.storage;

import java.io.Serializable;

/**
 * What a task needs to open the driver's store: sent to it, as a store itself cannot be.
 *
 * <p>For a disk, the root is enough. A store that needs settings in every process, such as a Hadoop configuration or credentials, adds them
 * here.
 */
public record StoreRef(String root) implements Serializable {
  public static StoreRef of(LogStore store) {
    return new StoreRef(store.root());
  }

  /** Opens the store in this process. */
  public LogStore open() {
    return Stores.open(root);
  }
}
