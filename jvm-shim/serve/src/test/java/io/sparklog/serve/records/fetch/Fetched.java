package io.sparklog.serve.records.fetch;

import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.kit.WrittenTopic;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.WritableByteChannel;
import java.util.ArrayList;
import java.util.List;

/** The records of an answer, as a client sees them. */
final class Fetched {
  private Fetched() {}

  /** The bytes that go to the client: those of files are sent from there. Closes the parts. */
  static byte[] bytes(List<FetchedBytes> parts) throws IOException {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    WritableByteChannel to = Channels.newChannel(all);
    for (FetchedBytes part : parts) {
      if (part instanceof FetchedBytes.FromFile sent) {
        sent.give(new FetchedBytes.FromFile.ByteTaker() {
          @Override
          public void ofFile(int from, int bytes, boolean isLast) {
            try {
              for (long at = 0; at < bytes;) {
                at += sent.file().send(sent.position() + from + at, bytes - at, to);
              }
            } catch (IOException e) {
              throw new UncheckedIOException(e);
            }
          }

          @Override
          public void baseOffset(long base) {
            all.writeBytes(ByteBuffer.allocate(Long.BYTES).putLong(base).array());
          }
        });
      } else {
        all.writeBytes(((FetchedBytes.Copied) part).take());
      }
    }
    PartitionReads.close(parts);
    return all.toByteArray();
  }

  /** The records of batches by their absolute offsets. Each batch is checked. */
  static List<WrittenTopic.Row> rows(WrittenTopic topic, int partition, byte[] batches) throws Exception {
    List<WrittenTopic.Row> rows = new ArrayList<>();
    BatchDecoder decoder = new BatchDecoder(1 << 26);
    for (int at = 0; at < batches.length; at += BatchHeader.totalBytes(batches, at)) {
      decoder.decode(batches, at, BatchHeader.totalBytes(batches, at));
      for (int i = 0; i < decoder.count(); i++) {
        long offset = BatchHeader.baseOffset(batches, at) + decoder.offsetDeltas()[i];
        WrittenTopic.Row row = topic.rows.get(partition).get((int) offset);
        if (row.offset() != offset || row.timestampMs() != decoder.timestamps()[i]) {
          throw new AssertionError("offset " + offset + " has another record than " + row);
        }
        rows.add(row);
      }
    }
    return rows;
  }

}
