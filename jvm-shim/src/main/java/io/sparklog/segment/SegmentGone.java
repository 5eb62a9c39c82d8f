package io.sparklog.segment;

import io.sparklog.spec.PartlogException;
import java.nio.file.NoSuchFileException;

/**
 * The data file of a live segment is gone: a later version may hold the same offsets in another file. A caller that can
 * reload the newest state does so; if that does not help, it throws {@link #missing}. FORMAT.md section 9.
 */
public final class SegmentGone extends NoSuchFileException {
  private final String topic;
  private final transient Segment segment;

  /** @param location of the file, for messages */
  public SegmentGone(String topic, Segment segment, String location, NoSuchFileException cause) {
    super(location);
    initCause(cause);
    this.topic = topic;
    this.segment = segment;
  }

  public String topic() {
    return topic;
  }

  public Segment segment() {
    return segment;
  }

  /** SEGMENT_MISSING. */
  public PartlogException missing() {
    return PartlogException.caused(getCause(), "SEGMENT_MISSING", "topic", topic, "partition", segment.partition(), "file", getFile(),
        "base", segment.base(), "end", segment.end());
  }
}
