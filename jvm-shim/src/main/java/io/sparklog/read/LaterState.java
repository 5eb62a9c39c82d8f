package io.sparklog.read;

import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentGone;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import java.util.Optional;

/**
 * The way of a reader when a data file is gone. It reads the newest state of the topic, and goes on there if other files hold the offsets
 * now. FORMAT.md section 9.
 */
public final class LaterState {
  private final ReadableTopics root;
  private final DataLoss dataLoss;

  /** @param dataLoss decides the next step if offsets have expired */
  public LaterState(ReadableTopics root, DataLoss dataLoss) {
    this.root = root;
    this.dataLoss = dataLoss;
  }

  /**
   * The newest state, which is later than {@code known}; empty if the topic is gone, or another has its name, and that is not an error.
   *
   * @param next the next offset to read of the partition; the state may start after it only if expired offsets are not an error
   * @throws PartlogException TOPIC_NOT_FOUND, TOPIC_REPLACED, SEGMENT_MISSING, OFFSETS_EXPIRED
   */
  public Optional<State> after(SegmentGone gone, State known, long next) {
    return after(gone, known.topic(), known.topicId(), known.version(), next);
  }

  /** As the other, later than {@code version} of a topic. */
  public Optional<State> after(SegmentGone gone, String topic, String topicId, long version, long next) {
    Segment missing = gone.segment();
    Optional<State> newest = root.newest(topic);
    if (newest.isEmpty() || !newest.get().topicId().equals(topicId)) {
      if (!dataLoss.isError()) {
        // A file system that is not mounted has lost nothing.
        root.requireReadable();
      }
      dataLoss.report(newest.isEmpty()
          ? root.notFound(topic)
          : PartlogException.caused(gone, "TOPIC_REPLACED", "topic", topic, "root", root.location()));
      return Optional.empty();
    }
    State state = newest.get();
    if (state.version() <= version) {
      throw gone.missing();
    }
    long start = state.start(missing.partition());
    // A segment below the log start offset has expired, even if its segment is still live.
    long from = Math.max(start, missing.base());
    if (state.segments(missing.partition(), from, missing.end()).stream().anyMatch(live -> live.file().equals(missing.file()))) {
      throw gone.missing();
    }
    if (start > next) {
      dataLoss.report(PartlogException.caused(gone, "OFFSETS_EXPIRED", "offset", next, "end", start, "count", start - next, "topic", topic,
          "partition", missing.partition(), "root", root.location(), "start", start));
    }
    return newest;
  }

  /**
   * The way of a read with offsets that it was asked for and that do not exist: the option {@code failOnDataLoss}.
   *
   * @param isError whether the read fails; otherwise it goes on with the offsets that exist
   */
  public record DataLoss(boolean isError) {
    /** Throws {@code loss}, or warns of it. */
    public void report(PartlogException loss) {
      if (isError) {
        throw loss;
      }
      Warnings.warn(DataLoss.class, "{} Continuing with the offsets that exist, because failOnDataLoss is false.", loss.getMessage());
    }
  }
}
