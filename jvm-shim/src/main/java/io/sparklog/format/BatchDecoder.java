package io.sparklog.format;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Locale;
import java.util.zip.CRC32C;

/**
 * Decodes one batch at a time into arrays of positions, which it uses again for the next batch.
 *
 * <p>Everything that FORMAT.md sections 3 and 10 ask of a reader is checked before {@link #decode} returns: afterwards each position and
 * length lies inside {@link #data}. Whatever the bytes are, the outcome is these arrays or {@link BadBatch}.
 *
 * <p>The arrays may be longer than {@link #count}, and new ones may take their place at the next {@link #decode}.
 */
public final class BatchDecoder {
  /** Arrays grow with the records that were really found: a hostile count costs no memory. */
  private static final int FIRST_RECORDS = 4096;

  /** More than the fields of a record, read one after the other without a look at its end, can run over it. */
  private static final int SLACK_BYTES = 24;

  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  private final long batchBytesMax;
  private final CRC32C crc = new CRC32C();
  private final Decompressor decompressor;
  private final RecordHeaders headers = new RecordHeaders();

  private int count;
  private boolean control;
  private boolean logAppendTime;
  private byte[] data = new byte[0];
  private int[] offsetDeltas = new int[0];
  private long[] timestamps = new long[0];
  private int[] keyAt = new int[0];
  private int[] keyLengths = new int[0];
  private int[] valueAt = new int[0];
  private int[] valueLengths = new int[0];
  private int[] headersAt = new int[0];
  private int[] headersEnd = new int[0];

  /** @param decompressedBytesMax a batch that takes more when decompressed is refused */
  public BatchDecoder(long decompressedBytesMax) {
    decompressor = new Decompressor(decompressedBytesMax);
    batchBytesMax = Layout.HEADER_BYTES + decompressedBytesMax / 8 * 9;
  }

  /** A batch of more bytes cannot be right, and need not be read. FORMAT.md section 10. */
  public long batchBytesMax() {
    return batchBytesMax;
  }

  /** The bytes of a batch after its header, wherever they are. */
  public interface Body {
    void addTo(CRC32C crc) throws IOException;
  }

  /**
   * Checks the header at {@code at} and the CRC-32C of its batch, which takes exactly {@code bytes} bytes. Of its records nothing is known
   * then but {@link #count}, which only the header says.
   *
   * @throws IOException that of {@code body}
   */
  public void check(byte[] buffer, int at, int bytes, Body body) throws BadBatch, IOException {
    beginCheck(buffer, at, bytes);
    body.addTo(crc);
    endCheck(buffer, at);
  }

  /** As the other, of a batch that is in the buffer as a whole. */
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
    control = BatchHeader.isControl(buffer, at);
    logAppendTime = BatchHeader.isLogAppendTime(buffer, at);
    count = BatchHeader.count(buffer, at);
  }

  /** Decodes the batch that takes exactly {@code bytes} bytes from {@code at} on. */
  public void decode(byte[] buffer, int at, int bytes) throws BadBatch {
    check(buffer, at, bytes);
    int claimed = count;
    count = 0;
    Codec codec = Codec.of(BatchHeader.codecId(buffer, at));
    int start;
    int end;
    if (codec == Codec.NONE || (claimed == 0 && bytes == Layout.HEADER_BYTES)) {
      data = buffer;
      start = at + Layout.HEADER_BYTES;
      end = at + bytes;
    } else {
      start = 0;
      end = decompressor.decompress(codec, buffer, at + Layout.HEADER_BYTES, at + bytes);
      data = decompressor.buffer();
    }
    if (claimed > (end - start) / Layout.RECORD_BYTES_MIN) {
      throw new BadBatch("its records count is " + claimed + ", but its records take " + (end - start) + " bytes");
    }
    int position = start;
    int previousDelta = -1;
    for (int done = 0; done < claimed;) {
      int until = Math.min(claimed, Math.max(FIRST_RECORDS, 2 * done));
      grow(until);
      position = walk(position, end, done, until, previousDelta, buffer, at);
      done = until;
      previousDelta = offsetDeltas[done - 1];
    }
    if (position != end) {
      throw new BadBatch((end - position) + " bytes are left after its last record");
    }
    if (previousDelta > BatchHeader.lastOffsetDelta(buffer, at)) {
      throw new BadBatch(
          "a record has offset delta " + previousDelta + ", its last offset delta is " + BatchHeader.lastOffsetDelta(buffer, at));
    }
    count = claimed;
  }

  public int count() {
    return count;
  }

  /** Whether the records are markers of Kafka's own, never to be handed to a user. */
  public boolean isControl() {
    return control;
  }

  public boolean isLogAppendTime() {
    return logAppendTime;
  }

  /** What the positions point into: the buffer given to {@link #decode}, or if that was compressed an array of this decoder. */
  public byte[] data() {
    return data;
  }

  /** Offset of each record less the batch's base offset; rising. */
  public int[] offsetDeltas() {
    return offsetDeltas;
  }

  /** Time of each record in ms since 1970-01-01 UTC; −1 if it has none. */
  public long[] timestamps() {
    return timestamps;
  }

  public int[] keyAt() {
    return keyAt;
  }

  /** −1 where the key is null. */
  public int[] keyLengths() {
    return keyLengths;
  }

  public int[] valueAt() {
    return valueAt;
  }

  /** −1 where the value is null. */
  public int[] valueLengths() {
    return valueLengths;
  }

  /** Where the headers count of each record lies, for {@link RecordHeaders#open}. */
  public int[] headersAt() {
    return headersAt;
  }

  public int[] headersEnd() {
    return headersEnd;
  }

  /**
   * Puts record {@code from} in the place of record {@code to}, which is lost: so a reader moves the records that it wants together, from
   * the first on.
   */
  public void keep(int from, int to) {
    offsetDeltas[to] = offsetDeltas[from];
    timestamps[to] = timestamps[from];
    keyAt[to] = keyAt[from];
    keyLengths[to] = keyLengths[from];
    valueAt[to] = valueAt[from];
    valueLengths[to] = valueLengths[from];
    headersAt[to] = headersAt[from];
    headersEnd[to] = headersEnd[from];
  }

  /** Reads records {@code from} to {@code until}, the first of them at {@code position}, and returns the position after them. */
  private int walk(int position, int end, int from, int until, int previousDelta, byte[] buffer, int at) throws BadBatch {
    long baseTimestamp = BatchHeader.baseTimestamp(buffer, at);
    int i = from;
    while (true) {
      int stopped = usualRecords(position, end, i, until, previousDelta, baseTimestamp);
      if (stopped > i) {
        i = stopped;
        position = headersEnd[i - 1];
        previousDelta = offsetDeltas[i - 1];
      }
      if (i == until) {
        break;
      }
      position = record(position, end, i, previousDelta, baseTimestamp);
      previousDelta = offsetDeltas[i];
      i++;
    }
    if (logAppendTime) {
      Arrays.fill(timestamps, from, until, BatchHeader.maxTimestamp(buffer, at));
    }
    return position;
  }

  /**
   * Reads records while they have the forms that nearly all have: lengths and offset deltas of up to three bytes, times of up to eight.
   * Returns the number of the first that has not, right or wrong; {@link #record} decides about that one.
   *
   * <p>A scan spends its time in this loop. It repeats the reading of a number instead of calling it, since Java returns one value and
   * this takes two, the number and the position. A field is compared with the end of its record only after it was read, which is safe
   * because this stays {@code SLACK_BYTES} away from the end of the data.
   */
  private int usualRecords(int position, int end, int from, int until, int previousDelta, long baseTimestamp) {
    byte[] data = this.data;
    int[] offsetDeltas = this.offsetDeltas;
    long[] timestamps = this.timestamps;
    int[] keyAt = this.keyAt;
    int[] keyLengths = this.keyLengths;
    int[] valueAt = this.valueAt;
    int[] valueLengths = this.valueLengths;
    int[] headersAt = this.headersAt;
    int[] headersEnd = this.headersEnd;
    int fastEnd = end - SLACK_BYTES;

    for (int i = from; i < until; i++) {
      if (position >= fastEnd) {
        return i;
      }
      int next = position;
      int bits = data[next++];
      if (bits < 0) {
        bits = bits & 0x7f | data[next++] << 7;
        if (bits < 0) {
          bits = bits & 0x3fff | data[next++] << 14;
          if (bits < 0) {
            return i;
          }
        }
      }
      if ((bits & 1) != 0) {
        return i;
      }
      int recordEnd = next + (bits >> 1);
      if (recordEnd > fastEnd) {
        return i;
      }

      next++; // Record attributes are not used.
      long timeBits = data[next++];
      if (timeBits < 0) {
        timeBits = timeBits & 0x7f | (long) data[next++] << 7;
        if (timeBits < 0) {
          next -= 2;
          long word = (long) LONG.get(data, next);
          long stop = ~word & 0x8080808080808080L;
          if (stop == 0) {
            return i;
          }
          next += (Long.numberOfTrailingZeros(stop) >> 3) + 1;
          word &= (stop ^ stop - 1) & 0x7f7f7f7f7f7f7f7fL; // the groups up to the first that has no high bit
          word = (word & 0x7f007f007f007f00L) >>> 1 | word & 0x007f007f007f007fL;
          word = (word & 0x3fff00003fff0000L) >>> 2 | word & 0x00003fff00003fffL;
          timeBits = (word & 0x0fffffff00000000L) >>> 4 | word & 0x000000000fffffffL;
        }
      }
      long time = baseTimestamp + ((timeBits >>> 1) ^ -(timeBits & 1));

      bits = data[next++];
      if (bits < 0) {
        bits = bits & 0x7f | data[next++] << 7;
        if (bits < 0) {
          bits = bits & 0x3fff | data[next++] << 14;
          if (bits < 0) {
            return i;
          }
        }
      }
      int delta = bits >> 1;
      if ((bits & 1) != 0 || delta <= previousDelta) {
        return i;
      }

      bits = data[next++];
      if (bits < 0) {
        bits = bits & 0x7f | data[next++] << 7;
        if (bits < 0) {
          bits = bits & 0x3fff | data[next++] << 14;
          if (bits < 0) {
            return i;
          }
        }
      }
      int keyLength = (bits >> 1) ^ -(bits & 1);
      int field = next + Math.max(keyLength, 0);
      if (keyLength < -1 || field > recordEnd) {
        return i;
      }
      keyAt[i] = next;

      next = field;
      bits = data[next++];
      if (bits < 0) {
        bits = bits & 0x7f | data[next++] << 7;
        if (bits < 0) {
          bits = bits & 0x3fff | data[next++] << 14;
          if (bits < 0) {
            return i;
          }
        }
      }
      int valueLength = (bits >> 1) ^ -(bits & 1);
      field = next + Math.max(valueLength, 0);
      if (valueLength < -1 || field >= recordEnd) {
        return i;
      }
      if ((data[field] | recordEnd - field - 1) != 0 && !headers(data, field, recordEnd)) {
        return i;
      }
      offsetDeltas[i] = delta;
      timestamps[i] = time;
      keyLengths[i] = keyLength;
      valueAt[i] = next;
      valueLengths[i] = valueLength;
      headersAt[i] = field;
      headersEnd[i] = recordEnd;
      previousDelta = delta;
      position = recordEnd;
    }
    return until;
  }

  /** Whether [at, end) holds right headers with lengths of one or two bytes; if not, {@link #record} shall decide. */
  private static boolean headers(byte[] data, int at, int end) {
    int count = data[at++];
    if (count < 0 || (count & 1) != 0) {
      return false;
    }
    for (; count > 0; count -= 2) {
      for (int part = 0; part < 2; part++) {
        if (at >= end) {
          return false;
        }
        int bits = data[at++];
        if (bits < 0) {
          bits = bits & 0x7f | data[at++] << 7;
        }
        if (bits == 1 && part == 1) {
          continue; // a null value
        }
        if (bits < 0 || (bits & 1) != 0) {
          return false;
        }
        at += bits >> 1;
      }
    }
    return at == end;
  }

  /** Reads record {@code i} at {@code position}, whatever it is, and returns the position after it. */
  private int record(int position, int end, int i, int previousDelta, long baseTimestamp) throws BadBatch {
    int next = Varint.endOf(data, position, end, Varint.INT_BYTES_MAX);
    int bytes = Varint.intOf(data, position, next);
    if (bytes < Layout.RECORD_BYTES_MIN - 1 || bytes > end - next) {
      throw new BadBatch("record " + i + " claims " + bytes + " bytes, and " + (end - next) + " are left");
    }
    int recordEnd = next + bytes;
    int field = next + 1; // Record attributes are not used.
    next = Varint.endOf(data, field, recordEnd, Varint.LONG_BYTES_MAX);
    timestamps[i] = baseTimestamp + Varint.longOf(data, field, next);
    field = next;
    next = Varint.endOf(data, field, recordEnd, Varint.INT_BYTES_MAX);
    int delta = Varint.intOf(data, field, next);
    if (delta <= previousDelta) {
      throw new BadBatch("record " + i + " has offset delta " + delta + " after " + previousDelta);
    }
    offsetDeltas[i] = delta;
    field = next;
    next = Varint.endOf(data, field, recordEnd, Varint.INT_BYTES_MAX);
    keyAt[i] = next;
    keyLengths[i] = length(Varint.intOf(data, field, next), next, recordEnd, i, "key");
    field = next + Math.max(keyLengths[i], 0);
    next = Varint.endOf(data, field, recordEnd, Varint.INT_BYTES_MAX);
    valueAt[i] = next;
    valueLengths[i] = length(Varint.intOf(data, field, next), next, recordEnd, i, "value");
    field = next + Math.max(valueLengths[i], 0);
    headersAt[i] = field;
    headersEnd[i] = recordEnd;
    headers.begin(data, field, recordEnd);
    while (headers.advance()) {
      // Checked by walking.
    }
    if (headers.position() != recordEnd) {
      throw new BadBatch("record " + i + " has " + (recordEnd - headers.position()) + " bytes too many");
    }
    return recordEnd;
  }

  private static int length(int length, int at, int end, int i, String what) throws BadBatch {
    if (length < -1 || length > end - at) {
      throw new BadBatch("record " + i + " has a " + what + " of " + length + " bytes, and " + (end - at) + " are left");
    }
    return length;
  }

  private void grow(int records) {
    if (offsetDeltas.length < records) {
      offsetDeltas = Arrays.copyOf(offsetDeltas, records);
      timestamps = Arrays.copyOf(timestamps, records);
      keyAt = Arrays.copyOf(keyAt, records);
      keyLengths = Arrays.copyOf(keyLengths, records);
      valueAt = Arrays.copyOf(valueAt, records);
      valueLengths = Arrays.copyOf(valueLengths, records);
      headersAt = Arrays.copyOf(headersAt, records);
      headersEnd = Arrays.copyOf(headersEnd, records);
    }
  }
}
