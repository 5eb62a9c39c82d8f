package io.sparklog.format;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * Finds the fields of the records of one batch, and checks that they are inside their record and that offsets ascend. FORMAT.md section 3.
 *
 * <p>Final, with fields that {@link BatchDecoder} reads directly, and one object for batch after batch: a scan spends its time here.
 */
final class RecordParser {
  /** Arrays grow with the records that are really there, so that a hostile count costs no memory. */
  private static final int FIRST_RECORDS = 4096;

  /** Upper bound on how far unchecked reads of one record can run past its end, in bytes. */
  private static final int SLACK_BYTES = 24;

  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  private final RecordHeaders headers = new RecordHeaders();

  byte[] data = new byte[0];
  int[] offsetDeltas = new int[0];
  long[] timestamps = new long[0];
  int[] keyAt = new int[0];
  int[] keyLengths = new int[0];
  int[] valueAt = new int[0];
  int[] valueLengths = new int[0];
  int[] headersAt = new int[0];
  int[] headersEnd = new int[0];

  /**
   * Parses {@code count} records, which take exactly [start, end) of {@code data}.
   *
   * @return the offset delta of the last record; −1 without records
   */
  int parse(byte[] data, int start, int end, int count, long baseTimestamp) throws BadBatch {
    this.data = data;
    int position = start;
    int previousDelta = -1;
    for (int done = 0; done < count;) {
      int until = Math.min(count, Math.max(FIRST_RECORDS, 2 * done));
      grow(until);
      position = parse(position, end, done, until, previousDelta, baseTimestamp);
      done = until;
      previousDelta = offsetDeltas[done - 1];
    }
    if (position != end) {
      throw new BadBatch((end - position) + " bytes are left after its last record");
    }
    return previousDelta;
  }

  /** Puts record {@code from} in the place of record {@code to}. */
  void keep(int from, int to) {
    offsetDeltas[to] = offsetDeltas[from];
    timestamps[to] = timestamps[from];
    keyAt[to] = keyAt[from];
    keyLengths[to] = keyLengths[from];
    valueAt[to] = valueAt[from];
    valueLengths[to] = valueLengths[from];
    headersAt[to] = headersAt[from];
    headersEnd[to] = headersEnd[from];
  }

  /** Parses records {@code from} to {@code until}, the first of them at {@code position}, and returns the position after them. */
  private int parse(int position, int end, int from, int until, int previousDelta, long baseTimestamp) throws BadBatch {
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
    return position;
  }

  /**
   * Reads records while they have the forms that nearly all have: lengths and offset deltas of up to three bytes, times of up to eight.
   * Returns the number of the first record of another form, valid or not; {@link #record} decides about that one.
   *
   * <p>A scan spends its time in this loop. It repeats the reading of a number instead of calling it, since Java returns one value and this
   * needs two, the number and the position. A field is compared with the end of its record only after it was read. That is safe because the
   * parser stays {@code SLACK_BYTES} away from the end of the data.
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

  /** Whether [at, end) holds valid headers with lengths of one or two bytes; if not, {@link #record} decides. */
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

  /** Reads record {@code i} at {@code position}, with any fields, and returns the position after it. */
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
