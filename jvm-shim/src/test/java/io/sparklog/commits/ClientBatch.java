package io.sparklog.commits;

import io.sparklog.format.BatchEncoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.format.Codec;
import io.sparklog.format.Layout;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** A batch as a client of Kafka sends it. */
record ClientBatch(Codec codec, String key, long time, long id, int epoch, int first, int records, String text) {
  static final long NOON = 1_700_000_000_000L;

  /** Records without a producer. @param text begins their values */
  static ClientBatch of(int records, String text) {
    return new ClientBatch(Codec.NONE, null, NOON, -1, -1, -1, records, text);
  }

  /** Records of a producer. */
  ClientBatch by(long id, int epoch, int first) {
    return new ClientBatch(codec, key, time, id, epoch, first, records, text);
  }

  ClientBatch keyed(String key) {
    return new ClientBatch(codec, key, time, id, epoch, first, records, text);
  }

  ClientBatch in(Codec codec) {
    return new ClientBatch(codec, key, time, id, epoch, first, records, text);
  }

  ClientBatch at(long time) {
    return new ClientBatch(codec, key, time, id, epoch, first, records, text);
  }

  ByteBuffer bytes() {
    BatchEncoder encoder = new BatchEncoder(codec, false);
    byte[] keyBytes = key == null ? new byte[0] : key.getBytes(StandardCharsets.UTF_8);
    for (int i = 0; i < records; i++) {
      byte[] value = (text + i).getBytes(StandardCharsets.UTF_8);
      encoder.begin(time + i, key == null ? -1 : keyBytes.length, value.length, 1);
      System.arraycopy(keyBytes, 0, encoder.buffer(), encoder.keyAt(), keyBytes.length);
      System.arraycopy(value, 0, encoder.buffer(), encoder.valueAt(), value.length);
    }
    byte[] batch = encoder.close(0);
    ByteBuffer fields = ByteBuffer.wrap(batch);
    fields.putLong(Layout.PRODUCER_ID_AT, id);
    fields.putShort(Layout.PRODUCER_EPOCH_AT, (short) epoch);
    fields.putInt(Layout.BASE_SEQUENCE_AT, first);
    BatchHeader.setMaxTimestamp(batch, BatchHeader.maxTimestamp(batch, 0)); // Makes the CRC right.
    return fields;
  }
}
