package io.sparklog.format;

import java.io.IOException;
import java.util.Arrays;
import java.util.Locale;
import java.util.zip.CRC32C;

/**
 * Decodes one batch at a time into arrays of positions, which it reuses for the next batch.
 *
 * <p>Everything that FORMAT.md sections 3 and 10 ask of a reader is checked before {@link #decode} returns: afterwards each position and
 * length is inside {@link #data}. For any bytes, the outcome is these arrays or {@link BadBatch}.
 *
 * <p>The arrays may be longer than {@link #count}. The next {@link #decode} may replace them by new ones.
 */
public final class BatchDecoder {
  private final RecordsLimit limit;
  private final CRC32C crc = new CRC32C();
  private final Decompressor decompressor;
  private final RecordParser records = new RecordParser();

  private int count;
  private boolean logAppendTime;

  /**
   * Must be made in the process that decodes: it takes the limit of this process too.
   *
   * @param decompressedBytesMax a batch that takes more when decompressed is refused
   */
  public BatchDecoder(long decompressedBytesMax) {
    this(RecordsLimit.here(decompressedBytesMax));
  }

  BatchDecoder(RecordsLimit limit) {
    this.limit = limit;
    this.decompressor = new Decompressor(limit);
  }

  /** Checks, before a batch of {@code bytes} bytes is read, that it is not larger than any that can be decoded. FORMAT.md section 10. */
  public void requireReadable(long bytes) throws BadBatch {
    limit.requireReadable(bytes);
  }

  /** The bytes of a batch after its header, wherever they are. */
  public interface Body {
    void addTo(CRC32C crc) throws IOException;
  }

  /**
   * Checks the header at {@code at} and the CRC-32C of its batch, which takes exactly {@code bytes} bytes. The records are not checked:
   * {@link #count} is then only the claim of the header.
   *
   * @throws IOException the exception of {@code body}
   */
  public void check(byte[] buffer, int at, int bytes, Body body) throws BadBatch, IOException {
    beginCheck(buffer, at, bytes);
    body.addTo(crc);
    endCheck(buffer, at);
  }

  /** As the other, for a batch that is in the buffer as a whole. */
  public void check(byte[] buffer, int at, int bytes) throws BadBatch {
    beginCheck(buffer, at, bytes);
    crc.update(buffer, at + Layout.HEADER_BYTES, bytes - Layout.HEADER_BYTES);
    endCheck(buffer, at);
  }

  private void beginCheck(byte[] buffer, int at, int bytes) throws BadBatch {
    count = 0;
    int total = BatchHeader.check(buffer, at, bytes);
    if (total != bytes) {
      throw new BadBatch("its length field gives it " + total + " bytes, expected " + bytes);
    }
    crc.reset();
    crc.update(buffer, at + Layout.ATTRIBUTES_AT, Layout.HEADER_BYTES - Layout.ATTRIBUTES_AT);
  }

  private void endCheck(byte[] buffer, int at) throws BadBatch {
    if (crc.getValue() != BatchHeader.crc(buffer, at)) {
      throw new BadBatch(String.format(Locale.ROOT, "its CRC-32C is %08x, expected %08x", crc.getValue(), BatchHeader.crc(buffer, at)));
    }
    logAppendTime = BatchHeader.isLogAppendTime(buffer, at);
    count = BatchHeader.count(buffer, at);
  }

  /** Decodes the batch that takes exactly {@code bytes} bytes from {@code at} on. */
  public void decode(byte[] buffer, int at, int bytes) throws BadBatch {
    check(buffer, at, bytes);
    int claimed = count;
    count = 0;
    Codec codec = Codec.of(BatchHeader.codecId(buffer, at));
    byte[] data = buffer;
    int start = at + Layout.HEADER_BYTES;
    int end = at + bytes;
    if (codec != Codec.NONE && (claimed != 0 || bytes != Layout.HEADER_BYTES)) {
      end = decompressor.decompress(codec, buffer, start, end);
      start = 0;
      data = decompressor.buffer();
    }
    if (claimed > (end - start) / Layout.RECORD_BYTES_MIN) {
      throw new BadBatch("its records count is " + claimed + ", but its records take " + (end - start) + " bytes");
    }
    int lastDelta = records.parse(data, start, end, claimed, BatchHeader.baseTimestamp(buffer, at));
    if (lastDelta > BatchHeader.lastOffsetDelta(buffer, at)) {
      throw new BadBatch(
          "a record has offset delta " + lastDelta + ", its last offset delta is " + BatchHeader.lastOffsetDelta(buffer, at));
    }
    if (logAppendTime) {
      Arrays.fill(records.timestamps, 0, claimed, BatchHeader.maxTimestamp(buffer, at));
    }
    count = claimed;
  }

  public int count() {
    return count;
  }

  public boolean isLogAppendTime() {
    return logAppendTime;
  }

  /** The array that the positions point into: the buffer given to {@link #decode}, or if that was compressed an array of this decoder. */
  public byte[] data() {
    return records.data;
  }

  /** Offset of each record minus the batch's base offset; ascending. */
  public int[] offsetDeltas() {
    return records.offsetDeltas;
  }

  /** Time of each record in ms since 1970-01-01 UTC; −1 if it has none. */
  public long[] timestamps() {
    return records.timestamps;
  }

  public int[] keyAt() {
    return records.keyAt;
  }

  /** −1 where the key is null. */
  public int[] keyLengths() {
    return records.keyLengths;
  }

  public int[] valueAt() {
    return records.valueAt;
  }

  /** −1 where the value is null. */
  public int[] valueLengths() {
    return records.valueLengths;
  }

  /** The position of the headers count of each record, for {@link RecordHeaders#open}. */
  public int[] headersAt() {
    return records.headersAt;
  }

  public int[] headersEnd() {
    return records.headersEnd;
  }

  /**
   * Overwrites record {@code to} with record {@code from}. A reader uses it to move the records that it wants to the front.
   */
  public void keep(int from, int to) {
    records.keep(from, to);
  }
}
