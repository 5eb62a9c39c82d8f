package io.sparklog.serve.records.fetch;

import io.sparklog.format.BadBatch;
import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.query.TimeSearch;
import io.sparklog.read.LaterState;
import io.sparklog.segment.ReadAhead;
import io.sparklog.segment.Segment;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/** Finds records by time. */
public final class OffsetLookup {
  /** The answer without such a record. */
  public static final At NONE = new At(-1, -1);

  private final ReadableTopics topics;
  private final PartitionReads reads;
  private final TimeSearch times;

  /**
   * A record.
   *
   * @param timestampMs since 1970
   */
  public record At(long offset, long timestampMs) {}

  /** A search for a record in a state. */
  @FunctionalInterface
  private interface Search {
    At in(State state) throws IOException;
  }

  public OffsetLookup(ReadableTopics topics, PartitionReads reads) {
    this.topics = topics;
    this.reads = reads;
    this.times = new TimeSearch(topics, new LaterState(topics, new LaterState.DataLoss(true)));
  }

  /**
   * The first record of a partition that has this time or a later one; {@link #NONE} if no record has.
   *
   * @param state if records of it expire meanwhile, the newest state counts
   * @param timestampMs since 1970
   * @throws PartlogException BATCH_CORRUPT, SEGMENT_CORRUPT, SEGMENT_MISSING, TOPIC_NOT_FOUND, TOPIC_REPLACED
   */
  public At first(State state, int partition, long timestampMs) throws IOException {
    return retained(state, of -> firstOf(of, partition, timestampMs));
  }

  private At firstOf(State state, int partition, long timestampMs) throws IOException {
    OptionalLong offset = times.firstOffset(state, partition, timestampMs);
    return offset.isPresent() ? greatest(state, partition, offset.getAsLong(), offset.getAsLong() + 1) : NONE;
  }

  /**
   * The first of the records of a partition with the greatest time; {@link #NONE} without records.
   *
   * @param state as in {@link #first}
   * @throws PartlogException as {@link #first}
   */
  public At greatest(State state, int partition) throws IOException {
    return retained(state, of -> greatestOf(of, partition));
  }

  private At greatestOf(State state, int partition) throws IOException {
    long start = state.start(partition);
    List<Segment> segments = state.segments(partition, start, state.end(partition));
    if (segments.isEmpty()) {
      return NONE;
    }
    // The greatest time of a segment may be of a record below the log start offset.
    Segment first = segments.get(0);
    At greatest = first.base() < start ? greatest(state, partition, start, first.end()) : NONE;
    long later = segments.stream().filter(segment -> segment.base() >= start).mapToLong(Segment::maxTimestamp).max().orElse(-1);
    return later > greatest.timestampMs ? firstOf(state, partition, later) : greatest;
  }

  /** Searches in a state. If records of it have expired, searches again in the newest state of the same topic. */
  private At retained(State first, Search search) throws IOException {
    for (State state = first;;) {
      try {
        return search.in(state);
      } catch (PartlogException e) {
        Optional<State> newest = e.id().equals("OFFSETS_EXPIRED") ? topics.newest(first.topic()) : Optional.empty();
        long known = state.version();
        state = newest.filter(found -> found.topicId().equals(first.topicId()) && found.version() > known).orElseThrow(() -> e);
      }
    }
  }

  /** The first of the records with the greatest time among the offsets [{@code start}, {@code end}). */
  private At greatest(State state, int partition, long start, long end) throws IOException {
    ReadAhead.ReadRoom room = reads.room();
    try {
      return greatest(state, partition, start, end, room);
    } finally {
      room.give();
    }
  }

  private At greatest(State state, int partition, long start, long end, ReadAhead.ReadRoom room) throws IOException {
    At greatest = NONE;
    BatchDecoder decoder = new BatchDecoder(state.config().decompressedBytesMax());
    for (long next = start; next < end;) {
      byte[] batch = reads.batch(state, partition, next, room);
      if (batch == null) {
        return greatest;
      }
      try {
        decoder.decode(batch, 0, batch.length);
      } catch (BadBatch e) {
        throw new IOException("offset " + next + " of " + state + ", partition " + partition + ": " + e.getMessage(), e);
      }
      long base = BatchHeader.baseOffset(batch, 0);
      for (int i = 0; i < decoder.count(); i++) {
        long offset = base + decoder.offsetDeltas()[i];
        if (offset >= start && offset < end && decoder.timestamps()[i] > greatest.timestampMs) {
          greatest = new At(offset, decoder.timestamps()[i]);
        }
      }
      next = base + BatchHeader.lastOffsetDelta(batch, 0) + 1;
    }
    return greatest;
  }
}
