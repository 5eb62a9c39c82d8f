package io.sparklog.read;

import io.sparklog.format.BatchHeader;
import io.sparklog.format.Layout;
import io.sparklog.format.OffsetIndex;
import io.sparklog.log.ReadableTopics;
import io.sparklog.segment.BatchPosition;
import io.sparklog.segment.BatchWalk;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFile;
import java.io.Closeable;
import java.io.IOException;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * Finds batches inside one segment. The index is a hint where to look: it has no checksum, so its entry is used only if the
 * header there proves it. Otherwise the headers are walked from the segment's start, or from where a walk before has stopped.
 */
public final class BatchLocator implements Closeable {
  private final ReadableTopics topics;
  private final String topic;
  private final Segment segment;
  private final WalkedSegments known;
  private final byte[] header = new byte[Layout.HEADER_BYTES];
  private SegmentFile file;
  private BatchWalk walk;

  /** Null until the index is asked for; empty without an index, or if a header did not prove it. */
  private Optional<OffsetIndex> index;

  /** The entry that was proved last, and its batch. */
  private int hintedEntry = OffsetIndex.NONE;
  private BatchPosition hinted;

  /** Null until the segment is looked into. */
  private WalkedSegments.WalkedSegment walked;

  /** Up to where the file was told that it will be read. */
  private long expectedPosition = -1;

  /** @param known where headers take requests, the batches of the segment that earlier walks met */
  public BatchLocator(ReadableTopics topics, String topic, Segment segment, WalkedSegments known) {
    this.topics = topics;
    this.topic = topic;
    this.segment = segment;
    this.known = known;
  }

  private WalkedSegments.WalkedSegment walked() {
    if (walked == null) {
      walked = topics.isRemote() ? known.of(topic, segment) : new WalkedSegments.WalkedSegment(segment);
    }
    return walked;
  }

  /**
   * The batch that holds {@code offset}, or one before it.
   *
   * @throws io.sparklog.segment.SegmentGone if the data file is gone
   */
  public BatchPosition atOffset(long offset) throws IOException {
    if (offset <= segment.base()) {
      return BatchPosition.startOf(segment);
    }
    if (walked().reaches(Long.MAX_VALUE, offset)) {
      return walked().atOffset(offset);
    }
    open();
    BatchPosition hint = hint(index().map(entries -> entries.floorByOffset(offset)).orElse(OffsetIndex.NONE));
    if (hint == null) {
      walkUpTo(Long.MAX_VALUE, offset);
      return walked().atOffset(offset);
    }
    if (topics.isRemote()) {
      // To read the bytes up to the next entry takes less time than another request.
      BatchPosition following = new BatchPosition(hint.position() + BatchHeader.totalBytes(header, 0),
          hint.offset() + BatchHeader.lastOffsetDelta(header, 0) + 1);
      return following.offset() > offset ? hint : following;
    }
    // Entries are kilobytes apart: go on to the batch itself.
    BatchWalk near = new BatchWalk(file, hint.position(), hint.offset());
    while (near.next() && near.last() < offset) {
      hint = new BatchPosition(near.position(), near.base());
    }
    return near.last() < offset ? hint : new BatchPosition(near.position(), near.base());
  }

  /** A position not far after the last batch with an offset below {@code offset}, as an index behind the segment says; −1 without one. */
  long near(long offset) throws IOException {
    open();
    if (index().isEmpty()) {
      return -1;
    }
    OffsetIndex entries = index().get();
    int last = entries.floorByOffset(offset - 1);
    // The batch that holds the offset before may begin after this entry, and ends before the next but one.
    int after = last == OffsetIndex.NONE ? 1 : entries.offset(last) == offset - 1 ? last + 1 : last + 2;
    return after < entries.entries()
        ? Math.min(segment.position() + entries.position(after), segment.endPosition())
        : segment.endPosition();
  }

  /**
   * A batch that begins at {@code position} of the file, or not far before it.
   *
   * @throws io.sparklog.segment.SegmentGone if the data file is gone
   */
  BatchPosition atPosition(long position) throws IOException {
    if (walked().reaches(position, Long.MAX_VALUE)) {
      return walked().atPosition(position);
    }
    open();
    BatchPosition hint = hintBefore(position);
    if (hint == null) {
      walkUpTo(position, Long.MAX_VALUE);
      return walked().atPosition(position);
    }
    return hint;
  }

  /**
   * Whether an index leads near {@code position}, so that the walk is short: a header proves its entry, or the position is before the first
   * entry.
   *
   * @throws io.sparklog.segment.SegmentGone if the data file is gone
   */
  boolean isIndexed(long position) throws IOException {
    open();
    return hintBefore(position) != null || index().isPresent() && position - segment.position() <= 2L * OffsetIndex.INTERVAL_BYTES;
  }

  private BatchPosition hintBefore(long position) throws IOException {
    return hint(index().map(entries -> entries.floorByPosition(position - segment.position())).orElse(OffsetIndex.NONE));
  }

  /** The last place from {@code first} to {@code position} where a batch begins or the segment ends; {@code first} is such a place. */
  public BatchPosition lastUpTo(BatchPosition first, long position) throws IOException {
    open();
    BatchPosition near = atPosition(position);
    BatchPosition last = near.position() > first.position() ? near : first;
    BatchWalk on = new BatchWalk(file, last.position(), last.offset());
    while (on.next() && on.position() + on.bytes() <= position) {
      last = new BatchPosition(on.position() + on.bytes(), on.last() + 1);
    }
    return last;
  }

  /** The batch after the batch at {@code place}; at the end of the segment, the place where another batch would begin. */
  public BatchPosition next(BatchPosition place) throws IOException {
    open();
    BatchWalk on = new BatchWalk(file, place.position(), place.offset());
    return on.next() ? new BatchPosition(on.position() + on.bytes(), on.last() + 1) : place;
  }

  private void open() throws IOException {
    if (file == null) {
      file = topics.open(topic, segment);
    }
  }

  private Optional<OffsetIndex> index() throws IOException {
    if (index == null) {
      index = segment.indexBytes() > 0 ? file.index() : topics.index(topic, segment);
    }
    return index;
  }

  /** The batch that an entry of the index points at; null if no batch is there, or another batch than the entry says. */
  private BatchPosition hint(int entry) throws IOException {
    if (entry == OffsetIndex.NONE) {
      return null;
    }
    if (entry != hintedEntry) {
      OffsetIndex entries = index().orElseThrow();
      long position = segment.position() + entries.position(entry);
      OptionalLong base = file.hintedBase(position, header, entries.offset(entry));
      if (base.isEmpty()) {
        index = Optional.empty();
        return null;
      }
      hintedEntry = entry;
      hinted = new BatchPosition(position, base.getAsLong());
    }
    return hinted;
  }

  /** Walks on to the batch at {@code position} or with {@code offset}, whichever comes first. */
  private void walkUpTo(long position, long offset) throws IOException {
    if (walk == null || walk.position() + walk.bytes() != walked().next().position()) {
      walk = new BatchWalk(file, walked().next().position(), walked().next().offset());
    }
    while (!walked().reaches(position, offset)) {
      expect(position, offset);
      if (!walk.next()) {
        return;
      }
      walked().add(walk);
    }
  }

  /**
   * A walk reads all bytes between headers that are near each other, and asks for them by few requests. Each request has half of the way
   * that is left, because the length of the way is an estimate.
   */
  private void expect(long position, long offset) throws IOException {
    long from = walked().next().position();
    if (from > expectedPosition && topics.isRemote() && !BatchWalk.skipsRecords(segment)) {
      double share = ((double) offset - segment.base()) / (segment.end() - segment.base());
      long to = Math.min(position, segment.position() + (long) (Math.min(1, share) * segment.bytes()));
      expectedPosition = from + Math.max(0, to - from) / 2;
      file.expect(from, expectedPosition);
    }
  }

  @Override
  public void close() throws IOException {
    if (file != null) {
      file.close();
    }
  }
}
