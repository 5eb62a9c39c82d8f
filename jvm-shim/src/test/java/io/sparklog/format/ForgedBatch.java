package io.sparklog.format;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/** Batches that no writer would make, with a right CRC: what a hostile one can do. */
final class ForgedBatch {
  int attributes;
  int lastOffsetDelta;
  int count;
  byte[] payload = new byte[0];

  static ForgedBatch of(int count, byte[] payload) {
    ForgedBatch forged = new ForgedBatch();
    forged.count = count;
    forged.lastOffsetDelta = Math.max(count - 1, 0);
    forged.payload = payload;
    return forged;
  }

  static ForgedBatch of(Codec codec, int count, byte[] payload) {
    ForgedBatch forged = of(count, payload);
    forged.attributes = codec.id();
    return forged;
  }

  byte[] bytes() {
    ByteBuffer batch = ByteBuffer.allocate(61 + payload.length);
    batch.putLong(0).putInt(49 + payload.length).putInt(0).put((byte) 2).putInt(0);
    batch.putShort((short) attributes).putInt(lastOffsetDelta).putLong(1000).putLong(2000);
    batch.putLong(-1).putShort((short) -1).putInt(-1).putInt(count).put(payload);
    return sealed(batch.array());
  }

  /** Makes the CRC right. */
  static byte[] sealed(byte[] batch) {
    CRC32C crc = new CRC32C();
    crc.update(batch, 21, batch.length - 21);
    ByteBuffer.wrap(batch).putInt(17, (int) crc.getValue());
    return batch;
  }

  /** As many records as are asked for, all null, 7 bytes each while their number is small. */
  static byte[] nullRecords(int count) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    byte[] delta = new byte[Varint.INT_BYTES_MAX];
    for (int i = 0; i < count; i++) {
      int deltaBytes = Varint.write(delta, 0, i);
      out.write(2 * (5 + deltaBytes));
      out.write(0);
      out.write(0);
      out.write(delta, 0, deltaBytes);
      out.write(1);
      out.write(1);
      out.write(0);
    }
    return out.toByteArray();
  }
}
