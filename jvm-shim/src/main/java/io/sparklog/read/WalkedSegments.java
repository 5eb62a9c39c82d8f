package io.sparklog.read;

import io.sparklog.segment.BatchPosition;
import io.sparklog.segment.BatchWalk;
import io.sparklog.segment.Segment;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The batches that were met in segments without an index, in a place over a network: each header there takes a request. A query that
 * takes a part of a segment at a time goes on where it has stopped. Not for several threads at once.
 */
public final class WalkedSegments {
  /** The most batches that are remembered: 32 MiB. The segment that was used least recently is forgotten first. */
  private static final int ROOM_MAX = 1 << 21;

  private record Key(String topic, Segment segment) {}

  private final Map<Key, WalkedSegment> segments = new LinkedHashMap<>(16, 0.75f, true);

  /** The batches that were met in a segment: the same object for as long as it is remembered. */
  WalkedSegment of(String topic, Segment segment) {
    WalkedSegment walked = segments.computeIfAbsent(new Key(topic, segment), first -> new WalkedSegment(segment));
    long room = segments.values().stream().mapToLong(WalkedSegment::room).sum();
    for (Iterator<WalkedSegment> eldest = segments.values().iterator(); room > ROOM_MAX && segments.size() > 1;) {
      room -= eldest.next().room();
      eldest.remove();
    }
    return walked;
  }

  /** The batches of one segment that were met by walking from its start on. */
  static final class WalkedSegment {
    /** At most this many batches of a segment are remembered; of a larger segment, each second, third or so. */
    private static final int PLACES_MAX = 1 << 16;

    static final int PLACES_MIN = 64;

    private final int each;
    private int walked;
    private int places;
    private long[] positions = new long[PLACES_MIN];
    private long[] offsets = new long[PLACES_MIN];
    private BatchPosition next;

    WalkedSegment(Segment segment) {
      each = segment.batches() / PLACES_MAX + 1;
      next = BatchPosition.startOf(segment);
    }

    /** Where the walk goes on. */
    BatchPosition next() {
      return next;
    }

    /** Adds the batch at {@link #next}. */
    void add(BatchWalk walk) {
      if (walked++ % each == 0 && places < PLACES_MAX) {
        if (places == positions.length) {
          positions = Arrays.copyOf(positions, 2 * places);
          offsets = Arrays.copyOf(offsets, 2 * places);
        }
        positions[places] = walk.position();
        offsets[places++] = walk.base();
      }
      next = new BatchPosition(walk.position() + walk.bytes(), walk.last() + 1);
    }

    /** Whether the walk has come to the batch at {@code position}, or to the batch with {@code offset}. */
    boolean reaches(long position, long offset) {
      return walked > 0 && (next.position() > position || next.offset() > offset);
    }

    /** The last remembered batch that begins at {@code position} or before; the first batch without such a batch. */
    BatchPosition atPosition(long position) {
      return at(Arrays.binarySearch(positions, 0, places, position));
    }

    /** As {@link #atPosition}, by offset. */
    BatchPosition atOffset(long offset) {
      return at(Arrays.binarySearch(offsets, 0, places, offset));
    }

    private BatchPosition at(int found) {
      int at = Math.max(0, found >= 0 ? found : -found - 2);
      return new BatchPosition(positions[at], offsets[at]);
    }

    /** How many batches there is room for. */
    int room() {
      return positions.length;
    }
  }
}
