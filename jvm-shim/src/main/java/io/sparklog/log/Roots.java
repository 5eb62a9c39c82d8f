package io.sparklog.log;

import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import java.lang.ref.SoftReference;
import java.util.HashMap;
import java.util.Map;

/**
 * The roots of this JVM: one {@link Root} for each path, so that sources, sinks and the writes of a foreachBatch load a topic once. A root
 * that nothing uses is dropped when memory runs short.
 */
public final class Roots {
  private static final Map<String, SoftReference<Root>> OPEN = new HashMap<>();

  private Roots() {}

  /**
   * The root at a path, which need not exist yet.
   *
   * @throws PartlogException see {@link Stores#open}
   */
  public static Root open(String path) {
    return of(Stores.open(path));
  }

  /** The root that a store keeps, as a task opens it: all tasks of an executor have one. */
  public static Root of(LogStore store) {
    synchronized (OPEN) {
      SoftReference<Root> known = OPEN.get(store.root());
      Root root = known == null ? null : known.get();
      if (root == null) {
        OPEN.values().removeIf(reference -> reference.get() == null);
        root = new Root(store);
        OPEN.put(store.root(), new SoftReference<>(root));
      }
      return root;
    }
  }
}
