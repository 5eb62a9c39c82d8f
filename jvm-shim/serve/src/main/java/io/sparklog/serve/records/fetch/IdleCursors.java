package io.sparklog.serve.records.fetch;

import io.sparklog.read.PartitionCursor;
import io.sparklog.spec.Warnings;
import java.io.IOException;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;

/**
 * Cursors between two fetches. A consumer that reads on finds the cursor of its last fetch by the offset of its next one, and so searches
 * no segment. It does not matter which connection a fetch comes by.
 */
final class IdleCursors {
  /** After so long a cursor is closed: it may keep a file that a merge has deleted. */
  private static final long IDLE_MS = 30_000;

  /** A place where a cursor waits. */
  private record CursorPlace(String topicId, int partition, long offset) {}

  private record Idle(PartitionCursor cursor, long sinceMs) {}

  private final int most;
  private final Clock clock;

  /** The longest waiting first. */
  private final LinkedHashMap<CursorPlace, Idle> idle = new LinkedHashMap<>();

  /** @param most cursors that wait at the same time */
  IdleCursors(int most, Clock clock) {
    this.most = most;
    this.clock = clock;
  }

  /** The cursor that waits at this offset; null without a cursor. The caller owns the cursor from now on. */
  synchronized PartitionCursor take(String topicId, int partition, long offset) {
    Idle found = idle.remove(new CursorPlace(topicId, partition, offset));
    return found == null ? null : found.cursor;
  }

  /** Takes a cursor back, which waits at its position from now on. */
  void keep(PartitionCursor cursor, int partition) {
    List<Idle> dropped = new ArrayList<>();
    synchronized (this) {
      Idle before = idle.put(new CursorPlace(cursor.topicId(), partition, cursor.position()), new Idle(cursor, clock.millis()));
      if (before != null) {
        dropped.add(before);
      }
      drop(most, clock.millis() - IDLE_MS, dropped);
    }
    dropped.forEach(gone -> close(gone.cursor));
  }

  /** Closes the cursors that have waited for long. */
  void tidy() {
    List<Idle> dropped = new ArrayList<>();
    synchronized (this) {
      drop(most, clock.millis() - IDLE_MS, dropped);
    }
    dropped.forEach(gone -> close(gone.cursor));
  }

  /** Closes all, as others need their memory. */
  void closeAll() {
    List<Idle> dropped = new ArrayList<>();
    synchronized (this) {
      drop(0, Long.MAX_VALUE, dropped);
    }
    dropped.forEach(gone -> close(gone.cursor));
  }

  private void drop(int left, long beforeMs, List<Idle> dropped) {
    for (Iterator<Idle> all = idle.values().iterator(); all.hasNext();) {
      Idle first = all.next();
      if (idle.size() <= left && first.sinceMs >= beforeMs) {
        return;
      }
      dropped.add(first);
      all.remove();
    }
  }

  synchronized int size() {
    return idle.size();
  }

  /** Closes a cursor. A failure is of a file that is no longer needed. */
  static void close(PartitionCursor cursor) {
    try {
      cursor.close();
    } catch (IOException | RuntimeException e) {
      Warnings.warn(IdleCursors.class, "A file was not closed", e);
    }
  }
}
