package io.sparklog.segment;

import io.sparklog.format.BadBatch;
import io.sparklog.format.BatchHeader;
import io.sparklog.format.Layout;
import io.sparklog.format.OffsetIndex;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FileReader;
import io.sparklog.storage.PlannedReads;
import io.sparklog.storage.ReadStore;
import io.sparklog.storage.UnfitFileException;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.WritableByteChannel;
import java.nio.file.NoSuchFileException;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.zip.CRC32C;

/**
 * A segment whose data file is open for reading: reads it, checks the headers of its batches, and says where it is damaged. FORMAT.md
 * sections 4 and 9. Not for several threads at once.
 */
public final class SegmentFile implements Closeable {
  private final String topic;
  private final Segment segment;
  private final String location;
  private final FileReader file;
  private final boolean ofThisFormat;

  private OptionalLong firstField = OptionalLong.empty();

  /**
   * A segment of topics of another kind: the number of its batches and the checksum of their headers are unknown.
   *
   * @param location of the file, for messages
   * @param file is open; closing this closes it
   */
  public SegmentFile(String topic, Segment segment, String location, FileReader file) {
    this(topic, segment, location, file, false);
  }

  private SegmentFile(String topic, Segment segment, String location, FileReader file, boolean ofThisFormat) {
    this.topic = topic;
    this.segment = segment;
    this.location = location;
    this.file = file;
    this.ofThisFormat = ofThisFormat;
  }

  /** Opens the data file of a segment of this format. @throws SegmentGone if it is gone; over a network, the first read throws it */
  public static SegmentFile open(ReadStore store, String topic, Segment segment) throws IOException {
    return open(store, store::open, topic, segment);
  }

  /** Like {@link #open(ReadStore, String, Segment)}. @param opener opens files of {@code store} */
  static SegmentFile open(ReadStore store, PlannedReads.FileOpener opener, String topic, Segment segment) throws IOException {
    String name = Names.dataFile(topic, segment.file());
    try {
      return new SegmentFile(topic, segment, store.location(name), opener.open(name, segment.endOfIndex()), true);
    } catch (NoSuchFileException e) {
      throw new SegmentGone(topic, segment, store.location(name), e);
    } catch (UnfitFileException e) {
      throw corrupt(topic, segment, store.location(name), e.getReason());
    }
  }

  public Segment segment() {
    return segment;
  }

  /** The length of the data file, in bytes: the segment may be a part of it. Over a network, the least length by the version file. */
  public long fileBytes() throws IOException {
    return file.bytes();
  }

  /** Tells that these bytes of the file will be read front to back: see {@link FileReader#expect}. */
  public void expect(long from, long to) throws IOException {
    file.expect(from, to);
  }

  /**
   * Reads exactly {@code length} bytes from {@code position} of the file on.
   *
   * @throws SegmentGone if the file is gone
   * @throws PartlogException SEGMENT_CORRUPT if the file ends before them
   */
  public void read(long position, byte[] to, int at, int length) throws IOException {
    read(position, ByteBuffer.wrap(to, at, length));
  }

  /** As the other, with as many bytes as {@code to} has room for. */
  public void read(long position, ByteBuffer to) throws IOException {
    try {
      file.read(position, to);
    } catch (EOFException e) {
      throw cut(e.getMessage());
    } catch (NoSuchFileException e) {
      throw new SegmentGone(topic, segment, location, e);
    } catch (UnfitFileException e) {
      throw corrupt(e.getReason());
    }
  }

  /**
   * Sends bytes of the file on, if it is on a disk: see {@link FileReader#send}.
   *
   * @return how many bytes were sent
   * @throws PartlogException SEGMENT_CORRUPT if the file ends before them
   */
  public long send(long position, long bytes, WritableByteChannel to) throws IOException {
    try {
      return file.send(position, bytes, to);
    } catch (EOFException e) {
      throw cut(e.getMessage());
    }
  }

  /**
   * Checks the header of a batch: all that a header alone can show, and its offsets. FORMAT.md sections 3 and 4.
   *
   * @param position of the batch in the file
   * @param header holds the header at {@code at}
   * @param endPosition the position that the batch may reach up to: the end of the segment, or of the part of it that is read
   * @param expected the offset that the batches before it lead to
   * @throws PartlogException BATCH_CORRUPT
   */
  public void checkHeader(long position, byte[] header, int at, long endPosition, long expected) {
    try {
      BatchHeader.check(header, at, endPosition - position);
      if (segment.dense() && !isDense(header, at)) {
        throw new BadBatch("records are missing in it, and its segment has one at every offset");
      }
      long field = BatchHeader.baseOffset(header, at);
      if (!BatchHeader.isStamped(field, expected - segment.base(), expected)) {
        throw new BadBatch("its base offset is " + field + ", where offset " + expected + " should be");
      }
      int delta = BatchHeader.lastOffsetDelta(header, at);
      if (delta >= segment.end() - expected) { // Not expected + delta: that may be beyond the range of long.
        throw new BadBatch("it covers " + (delta + 1L) + " offsets from " + expected + ", past the end of its segment");
      }
    } catch (BadBatch e) {
      throw corrupt(position, e);
    }
  }

  private static boolean isDense(byte[] header, int at) {
    return BatchHeader.count(header, at) == BatchHeader.lastOffsetDelta(header, at) + 1;
  }

  /** The index behind the batches; empty if it does not exist or cannot be read. It is a hint: a reader proves each entry. */
  public Optional<OffsetIndex> index() throws IOException {
    if (segment.indexBytes() == 0) {
      return Optional.empty();
    }
    byte[] entries = new byte[segment.indexBytes()];
    try {
      file.read(segment.endPosition(), ByteBuffer.wrap(entries));
    } catch (NoSuchFileException e) {
      throw new SegmentGone(topic, segment, location, e);
    } catch (IOException absent) {
      return Optional.empty();
    }
    return Optional.of(new OffsetIndex(entries, segment.base()));
  }

  /**
   * Checks that an index is right to say that the batch at {@code position} ends with offset {@code last}. An
   * index has no checksum, and the offset to expect is unknown here without the batch before. So this method checks more than {@link
   * #checkHeader}. FORMAT.md section 9.
   *
   * @param header is filled with the header
   * @return the offset of its first record; empty if the batch does not exist, or if its header does not prove it
   */
  public OptionalLong hintedBase(long position, byte[] header, long last) throws IOException {
    if (position < segment.position() || position > segment.endPosition() - Layout.HEADER_BYTES) {
      return OptionalLong.empty();
    }
    try {
      file.read(position, ByteBuffer.wrap(header, 0, Layout.HEADER_BYTES));
      BatchHeader.check(header, 0, segment.endPosition() - position);
    } catch (BadBatch | EOFException e) {
      return OptionalLong.empty();
    } catch (NoSuchFileException e) {
      throw new SegmentGone(topic, segment, location, e);
    }
    long stored = BatchHeader.baseOffset(header, 0);
    long base = last - BatchHeader.lastOffsetDelta(header, 0);
    // An index is linked only after the stamp was synced, so it never points at a half stamped field: the field is relative or absolute.
    boolean fits = base >= segment.base() && last < segment.end() && (isDense(header, 0) || !segment.dense())
        && (stored == base || stored == base - segment.base());
    // A field that may be a relative and an absolute offset alike could fit a wrong entry the wrong way.
    boolean ambiguous = segment.base() > 0 && stored >= segment.base() && stored < segment.end() - segment.base();
    if (fits && ambiguous && segment.indexBytes() > 0) {
      // Nothing stamps a file that has an index behind its segment: the fields of all its batches are relative, or all are absolute.
      fits = stored - base == firstField() - segment.base();
      ambiguous = false;
    }
    return fits && !ambiguous ? OptionalLong.of(base) : OptionalLong.empty();
  }

  /** The base offset field of the first batch, read once. */
  private long firstField() throws IOException {
    if (firstField.isEmpty()) {
      byte[] first = new byte[Long.BYTES];
      read(segment.position(), first, 0, first.length);
      firstField = OptionalLong.of(BatchHeader.baseOffset(first, 0));
    }
    return firstField.getAsLong();
  }

  /** @throws PartlogException SEGMENT_CORRUPT if {@code headers} is not the checksum that all headers of the segment should have */
  public void requireHeaderCrc(CRC32C headers) {
    if (ofThisFormat && (int) headers.getValue() != segment.headerCrc()) {
      throw corrupt("the headers of its batches do not have the checksum that the version file gives");
    }
  }

  /**
   * Checks the facts that only all batches of the segment show together.
   *
   * @throws PartlogException SEGMENT_CORRUPT if they are not as many as the version file says, or {@code headers} is not their checksum
   */
  public void requireWhole(CRC32C headers, int batches) {
    if (ofThisFormat && batches != segment.batches()) {
      throw corrupt("it has " + batches + " batches, and its version file says " + segment.batches());
    }
    requireHeaderCrc(headers);
  }

  /** BATCH_CORRUPT for the batch at {@code position}; BATCH_TOO_LARGE if it only exceeds the limit of this process. */
  public PartlogException corrupt(long position, BadBatch why) {
    if (why.limit().isPresent()) {
      return PartlogException.caused(why, "BATCH_TOO_LARGE", "topic", topic, "partition", segment.partition(), "byte", position, "file",
          location, "limit", why.limit().getAsLong());
    }
    return PartlogException.caused(why, "BATCH_CORRUPT", "topic", topic, "partition", segment.partition(), "byte", position, "file",
        location, "reason", why.getMessage());
  }

  /** SEGMENT_CORRUPT for the segment as a whole. */
  public PartlogException corrupt(String why) {
    return corrupt(topic, segment, location, why);
  }

  private static PartlogException corrupt(String topic, Segment segment, String location, String why) {
    return PartlogException.of("SEGMENT_CORRUPT", "topic", topic, "partition", segment.partition(), "base", segment.base(), "end",
        segment.end(), "file", location, "reason", why);
  }

  /** SEGMENT_CORRUPT for a file that ends too early, as {@code why} says. */
  public PartlogException cut(String why) {
    return corrupt("the file is cut: " + why);
  }

  @Override
  public void close() throws IOException {
    file.close();
  }
}
