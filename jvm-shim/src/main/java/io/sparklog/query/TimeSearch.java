package io.sparklog.query;

import io.sparklog.format.BadBatch;
import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.read.LaterState;
import io.sparklog.segment.BatchWalk;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFile;
import io.sparklog.segment.SegmentGone;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/** Finds records by time: segments by their fields in the state, batches by their headers, then the record itself. */
public final class TimeSearch {
  private final ReadableTopics topics;
  private final LaterState later;

  public TimeSearch(ReadableTopics topics, LaterState later) {
    this.topics = topics;
    this.later = later;
  }

  /**
   * The first offset of a partition whose record has {@code timestamp} (ms since 1970) or a later one; times need not be in order.
   *
   * @throws PartlogException BATCH_CORRUPT, SEGMENT_CORRUPT, SEGMENT_MISSING, TOPIC_NOT_FOUND, TOPIC_REPLACED, OFFSETS_EXPIRED
   */
  public OptionalLong firstOffset(State planned, int partition, long timestamp) throws IOException {
    State state = planned;
    long start = state.start(partition);
    while (true) {
      try {
        return firstOffset(state, partition, start, planned.end(partition), timestamp);
      } catch (SegmentGone gone) {
        // The segments before this one were searched already.
        start = Math.max(start, gone.segment().base());
        Optional<State> newest = later.after(gone, state, start);
        if (newest.isEmpty()) {
          return OptionalLong.empty();
        }
        state = newest.get();
        start = Math.max(start, state.start(partition));
      }
    }
  }

  private OptionalLong firstOffset(State state, int partition, long start, long end, long timestamp) throws IOException {
    for (Segment segment : state.segments(partition, start, end)) {
      if (segment.maxTimestamp() < timestamp) {
        continue;
      }
      if (segment.minTimestamp() >= timestamp && segment.dense()) {
        return OptionalLong.of(Math.max(start, segment.base()));
      }
      OptionalLong found = firstOffset(state, segment, start, timestamp);
      if (found.isPresent()) {
        // A segment of a later state may go on after the end.
        return found.getAsLong() < end ? found : OptionalLong.empty();
      }
    }
    return OptionalLong.empty();
  }

  private record Candidate(long position, long base, int bytes) {}

  private OptionalLong firstOffset(State state, Segment segment, long start, long timestamp) throws IOException {
    try (SegmentFile file = topics.open(state.topic(), segment)) {
      for (Candidate batch : candidates(file, start, timestamp)) {
        OptionalLong found = firstOffset(file, state, batch, start, timestamp);
        if (found.isPresent()) {
          return found;
        }
      }
      return OptionalLong.empty();
    }
  }

  /**
   * The batches that may hold such a record, by their headers: all headers of the segment are read, since only together they are checked.
   */
  private static List<Candidate> candidates(SegmentFile file, long start, long timestamp) throws IOException {
    List<Candidate> candidates = new ArrayList<>();
    BatchWalk walk = new BatchWalk(file);
    while (walk.next()) {
      if (BatchHeader.maxTimestamp(walk.buffer(), walk.at()) >= timestamp && walk.last() >= start) {
        candidates.add(new Candidate(walk.position(), walk.base(), (int) walk.bytes()));
      }
    }
    walk.requireHeaderCrc();
    return candidates;
  }

  private static OptionalLong firstOffset(SegmentFile file, State state, Candidate batch, long start, long timestamp) throws IOException {
    BatchDecoder decoder = new BatchDecoder(state.config().decompressedBytesMax());
    try {
      decoder.requireReadable(batch.bytes);
      byte[] bytes = new byte[batch.bytes];
      file.read(batch.position, bytes, 0, bytes.length);
      decoder.decode(bytes, 0, bytes.length);
    } catch (BadBatch e) {
      throw file.corrupt(batch.position, e);
    }
    for (int i = 0; i < decoder.count(); i++) {
      long offset = batch.base + decoder.offsetDeltas()[i];
      if (decoder.timestamps()[i] >= timestamp && offset >= start) {
        return OptionalLong.of(offset);
      }
    }
    return OptionalLong.empty();
  }
}
