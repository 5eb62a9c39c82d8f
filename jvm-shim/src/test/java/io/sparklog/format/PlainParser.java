package io.sparklog.format;

import java.util.ArrayList;
import java.util.List;

/** The records section as FORMAT.md section 3 puts it into words, without a thought of speed; the decoder is compared with it. */
final class PlainParser {
  static final class Refused extends Exception {
    Refused(String reason) {
      super(reason);
    }
  }

  private final byte[] data;
  private int at;
  private int end;

  private PlainParser(byte[] data) {
    this.data = data;
    this.end = data.length;
  }

  static List<PlainRecord> parse(byte[] data, int count, int lastOffsetDelta, long baseTimestamp) throws Refused {
    PlainParser parser = new PlainParser(data);
    List<PlainRecord> records = new ArrayList<>();
    int last = -1;
    for (int i = 0; i < count; i++) {
      PlainRecord record = parser.record(baseTimestamp);
      parser.require(record.offsetDelta() > last && record.offsetDelta() <= lastOffsetDelta);
      last = record.offsetDelta();
      records.add(record);
    }
    parser.require(parser.at == data.length);
    return records;
  }

  private PlainRecord record(long baseTimestamp) throws Refused {
    end = data.length;
    long length = varint(32);
    require(length >= 0 && length <= data.length - at);
    end = at + (int) length;
    require(end > at);
    at++;
    long timestamp = baseTimestamp + varint(64);
    int delta = (int) varint(32);
    String key = nullable();
    String value = nullable();
    long headers = varint(32);
    require(headers >= 0 && headers <= (end - at) / 2);
    List<PlainRecord.Header> list = new ArrayList<>();
    for (long i = 0; i < headers; i++) {
      String name = nullable();
      require(name != null);
      list.add(new PlainRecord.Header(name, nullable()));
    }
    require(at == end);
    return new PlainRecord(delta, timestamp, key, value, list);
  }

  private String nullable() throws Refused {
    long length = varint(32);
    require(length >= -1 && length <= end - at);
    int from = at;
    at += Math.max((int) length, 0);
    return PlainRecord.hex(data, from, (int) length);
  }

  private long varint(int bitsMax) throws Refused {
    long bits = 0;
    int shift = 0;
    while (true) {
      require(at < end && shift < bitsMax);
      long group = data[at] & 0x7f;
      require(shift + 7 <= bitsMax || group >>> (bitsMax - shift) == 0);
      bits |= group << shift;
      shift += 7;
      if (data[at++] >= 0) {
        return (bits & 1) == 0 ? bits >>> 1 : ~(bits >>> 1);
      }
    }
  }

  private void require(boolean right) throws Refused {
    if (!right) {
      throw new Refused("at " + at);
    }
  }
}
