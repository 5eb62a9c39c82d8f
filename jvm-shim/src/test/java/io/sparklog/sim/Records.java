package io.sparklog.sim;

import io.sparklog.format.BadBatch;
import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchHeader;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** Bytes on the disk, looked at without the classes that are under test. */
final class Records {
  private Records() {}

  /** The values of the records of a segment. */
  static List<String> values(byte[] file, Known.Segment segment) {
    BatchDecoder decoder = new BatchDecoder(1 << 20);
    List<String> values = new ArrayList<>();
    int at = (int) segment.position();
    int end = at + (int) segment.bytes();
    try {
      while (at < end) {
        int bytes = BatchHeader.check(file, at, end - at);
        long field = BatchHeader.baseOffset(file, at);
        if (!BatchHeader.isStamped(field, values.size(), segment.base() + values.size())) {
          throw new Truth.Broken("I2: the batch at " + at + " of " + segment + " has base offset " + field);
        }
        decoder.decode(file, at, bytes);
        for (int i = 0; i < decoder.count(); i++) {
          values.add(value(decoder, i));
        }
        at += bytes;
      }
    } catch (BadBatch e) {
      throw new Truth.Broken("I2: " + segment + " is damaged: " + e.getMessage());
    }
    return values;
  }

  /** The value of a record, without what pads it. */
  static String value(BatchDecoder decoder, int record) {
    String value = new String(decoder.data(), decoder.valueAt()[record], decoder.valueLengths()[record], StandardCharsets.UTF_8);
    int pad = value.indexOf(' ');
    return pad < 0 ? value : value.substring(0, pad);
  }

  static String sha256(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}
