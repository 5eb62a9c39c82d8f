package io.sparklog.merge;

import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchEncoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.log.TopicConfig;
import io.sparklog.segment.ExtentReader;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentBuilder;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * The same records in larger batches: the records of neighbouring segments, in order, each with its offset, time, key, value and headers.
 *
 * <p>A LogAppendTime batch gives all its records one time, so only such batches of the same time are joined. A batch that is large
 * already does not change.
 */
final class Rebatch {
  private final TopicConfig config;
  private final int batchBytes;
  private final MergedFiles files;
  private final boolean ordered;
  private final BatchEncoder created;
  private final BatchEncoder appended;
  private final List<Segment> done = new ArrayList<>();
  private final int partition;

  /** The encoder with the open batch, of the two encoders. */
  private BatchEncoder open;

  private SegmentBuilder segment;
  private long segmentBase;
  private long nextOffset;

  Rebatch(TopicConfig config, int batchBytes, MergedFiles files, List<Segment> sources) {
    this.config = config;
    this.batchBytes = batchBytes;
    this.files = files;
    this.ordered = sources.stream().allMatch(Segment::ordered);
    this.created = new BatchEncoder(config.codec(), false);
    this.appended = new BatchEncoder(config.codec(), true);
    this.open = created;
    this.partition = sources.get(0).partition();
    this.nextOffset = sources.get(0).base();
  }

  /** Adds the batch of {@code source} that {@code reader} is at; {@code decoder} has its records. */
  void add(Segment source, ExtentReader reader, BatchDecoder decoder) throws IOException {
    byte[] header = reader.buffer();
    if (reader.bytes() >= batchBytes / 2) {
      closeBatch();
      append(header, reader.at(), reader.bytes(), leastTime(source, header, reader.at()), ordered);
      return;
    }
    BatchEncoder encoder = decoder.isLogAppendTime() ? appended : created;
    for (int i = 0; i < decoder.count(); i++) {
      int headersBytes = decoder.headersEnd()[i] - decoder.headersAt()[i];
      long time = decoder.timestamps()[i];
      boolean joins = encoder == open && (encoder == created || encoder.isEmpty() || encoder.maxTimestamp() == time);
      if (!joins || encoder.bytesWith(time, decoder.keyLengths()[i], decoder.valueLengths()[i], headersBytes) > batchBytes) {
        closeBatch();
        open = encoder;
      }
      encoder.begin(time, decoder.keyLengths()[i], decoder.valueLengths()[i], headersBytes);
      copy(decoder, decoder.keyAt()[i], encoder.keyAt(), decoder.keyLengths()[i]);
      copy(decoder, decoder.valueAt()[i], encoder.valueAt(), decoder.valueLengths()[i]);
      copy(decoder, decoder.headersAt()[i], encoder.headersAt(), headersBytes);
    }
  }

  private void copy(BatchDecoder from, int at, int to, int length) {
    if (length > 0) {
      System.arraycopy(from.data(), at, open.buffer(), to, length);
    }
  }

  /** A lower bound of the times of a batch of {@code source}, and not above its greatest. */
  static long leastTime(Segment source, byte[] buffer, int at) {
    return Math.max(-1, Math.min(source.minTimestamp(), BatchHeader.maxTimestamp(buffer, at)));
  }

  private void closeBatch() throws IOException {
    if (!open.isEmpty()) {
      long minTimestamp = Math.max(-1, open.minTimestamp());
      boolean inOrder = ordered && open.isOrdered();
      byte[] batch = open.close(nextOffset);
      append(batch, 0, batch.length, minTimestamp, inOrder);
    }
  }

  private void append(byte[] buffer, int at, int bytes, long minTimestamp, boolean inOrder) throws IOException {
    if (segment != null && !segment.fits(buffer, at, config.segmentBytes())) {
      closeSegment();
    }
    if (segment == null) {
      segment = new SegmentBuilder(partition, null, 0);
      segmentBase = nextOffset;
    }
    segment.add(buffer, at, minTimestamp, true, inOrder); // Whether it is routed, the state tells that the merge extends.
    BatchHeader.setBaseOffset(buffer, at, nextOffset);
    files.write(partition, buffer, at, bytes);
    nextOffset += BatchHeader.count(buffer, at);
  }

  private void closeSegment() throws IOException {
    done.add(files.end(segment, segmentBase));
    segment = null;
  }

  /** The segments that hold all that was added. */
  List<Segment> end() throws IOException {
    closeBatch();
    closeSegment();
    return done;
  }
}
