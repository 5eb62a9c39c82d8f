package io.sparklog.read;

import io.sparklog.segment.Segment;
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
}
