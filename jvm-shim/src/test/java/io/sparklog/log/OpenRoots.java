package io.sparklog.log;

import io.sparklog.storage.LogStore;

/** The roots that a JVM knows by their places. */
public final class OpenRoots {
  private OpenRoots() {}

  /** A root over {@code store}. {@link Root#of(String)} gives it for the place of this store, while the caller keeps it. */
  public static Root over(LogStore store) {
    return Root.of(store);
  }
}
