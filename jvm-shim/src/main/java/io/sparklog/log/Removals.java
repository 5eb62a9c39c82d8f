package io.sparklog.log;

import io.sparklog.segment.Names;
import io.sparklog.spec.Invariant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The data files that versions have removed and that may still be there. A file that several segments share may be removed by several
 * versions: it waits for the last of them. FORMAT.md section 12.
 */
public final class Removals {
  /** By file, in the order of {@link Removal#last}. */
  private final Map<String, Removal> files = new LinkedHashMap<>();
  private long readTo;

  /**
   * The known facts of a removed file.
   *
   * @param first the lowest version that removed a segment of it
   * @param last the greatest
   * @param timeMs of {@code last}, by its writer's clock, in ms since 1970
   */
  public record Removal(long first, long last, long timeMs) {}

  /** The first version that was not added. */
  public long readTo() {
    return readTo;
  }

  /** All that the versions below {@code boundary} removed is deleted: they need not be read. */
  public void beginAt(long boundary) {
    if (readTo < boundary) {
      files.clear();
      readTo = boundary;
    }
  }

  /** Adds the files that the version {@link #readTo} removed. Nothing waits for a deleted topic. */
  public void add(Version version) {
    Invariant.require(version.version() == readTo, () -> "version " + version.version() + " of topic " + version.head().topic()
        + " is read for what it removed, and " + readTo + " is next");
    if (version.head().deleted()) {
      files.clear();
    }
    for (Version.Removed removed : version.removed()) {
      if (!Names.isShared(removed.file())) {
        // Taken out first, so that it gets behind the others.
        Removal before = files.remove(removed.file());
        files.put(removed.file(),
            new Removal(before == null ? version.version() : before.first(), version.version(), version.head().time()));
      }
    }
    readTo = version.version() + 1;
  }

  /** Goes on behind a version that cannot be read. */
  public void skip() {
    readTo++;
  }

  /** The known facts of a file; null if no version that was added removed it. */
  public Removal of(String file) {
    return files.get(file);
  }

  public int size() {
    return files.size();
  }

  public Set<String> files() {
    return files.keySet();
  }

  /** The files that the same version removed last, of the lowest such version; may be empty. */
  public List<String> oldest() {
    List<String> oldest = new ArrayList<>();
    long last = -1;
    for (Map.Entry<String, Removal> file : files.entrySet()) {
      if (!oldest.isEmpty() && file.getValue().last() != last) {
        break;
      }
      last = file.getValue().last();
      oldest.add(file.getKey());
    }
    return oldest;
  }

  /** These files are deleted, or live. */
  public void settle(List<String> settled) {
    settled.forEach(files::remove);
  }

  /** All that versions below it removed is settled. */
  public long settledTo() {
    return files.values().stream().mapToLong(Removal::first).min().orElse(readTo);
  }
}
