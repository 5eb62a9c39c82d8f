package io.sparklog.read;

import io.sparklog.format.BadBatch;
import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.log.BatchWalk;
import io.sparklog.log.Names;
import io.sparklog.log.Segment;
import io.sparklog.log.State;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FileReader;
import io.sparklog.storage.LogStore;
import java.io.EOFException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.zip.CRC32C;

/** Finds records by time: segments by what the state says of them, batches by their headers, then the record itself. */
final class TimeSearch {
  private TimeSearch() {}

  /**
   * The first offset of a partition whose record has {@code timestamp} (ms) or a later one; times need not be in order.
   *
   * @throws PartlogException BATCH_CORRUPT, SEGMENT_CORRUPT, SEGMENT_MISSING
   */
  static OptionalLong firstOffset(LogStore store, State state, int partition, long timestamp) throws IOException {
    long start = state.start(partition);
    for (Segment segment : state.segments(partition, start, state.end(partition))) {
      if (segment.maxTimestamp() < timestamp) {
        continue;
      }
      if (segment.minTimestamp() >= timestamp && segment.dense()) {
        return OptionalLong.of(Math.max(start, segment.base()));
      }
      OptionalLong found = firstOffset(store, state, segment, start, timestamp);
      if (found.isPresent()) {
        return found;
      }
    }
    return OptionalLong.empty();
  }

  private record Candidate(long position, long base, int bytes) {}

  private static OptionalLong firstOffset(LogStore store, State state, Segment segment, long start, long timestamp) throws IOException {
    try (FileReader file = store.open(Names.topicFile(state.topic(), segment.file()))) {
      for (Candidate batch : candidates(state.topic(), segment, file, start, timestamp)) {
        OptionalLong found = firstOffset(file, state, segment, batch, start, timestamp);
        if (found.isPresent()) {
          return found;
        }
      }
      return OptionalLong.empty();
    } catch (NoSuchFileException gone) {
      throw PartlogException.caused(gone, "SEGMENT_MISSING", "topic", state.topic(), "partition", segment.partition(), "file",
          store.location(Names.topicFile(state.topic(), segment.file())), "base", segment.base(), "end", segment.end());
    }
  }

  /**
   * The batches that may hold such a record. Which do not is taken from headers alone; so all headers of the segment are read, for only
   * together they can be checked.
   */
  private static List<Candidate> candidates(String topic, Segment segment, FileReader file, long start, long timestamp) throws IOException {
    List<Candidate> candidates = new ArrayList<>();
    CRC32C headerCrc = new CRC32C();
    for (BatchWalk walk = new BatchWalk(topic, segment, file); walk.next();) {
      BatchHeader.addTo(headerCrc, walk.buffer(), walk.at(), segment.dense());
      if (BatchHeader.maxTimestamp(walk.buffer(), walk.at()) >= timestamp && walk.last() >= start) {
        candidates.add(new Candidate(walk.position(), walk.base(), (int) walk.bytes()));
      }
    }
    if ((int) headerCrc.getValue() != segment.headerCrc()) {
      throw BatchWalk.corrupt(topic, segment, file, "the headers of its batches do not have the checksum that the version file gives");
    }
    return candidates;
  }

  private static OptionalLong firstOffset(FileReader file, State state, Segment segment, Candidate batch, long start, long timestamp)
      throws IOException {
    byte[] bytes = new byte[batch.bytes];
    BatchDecoder decoder = new BatchDecoder(state.config().decompressedBytesMax());
    try {
      file.read(batch.position, bytes, 0, bytes.length);
      decoder.decode(bytes, 0, bytes.length);
    } catch (EOFException e) {
      throw BatchWalk.corrupt(state.topic(), segment, file, "the file is cut: " + e.getMessage());
    } catch (BadBatch e) {
      throw BatchWalk.corrupt(state.topic(), segment, file, batch.position, e);
    }
    for (int i = 0; i < decoder.count() && !decoder.isControl(); i++) {
      long offset = batch.base + decoder.offsetDeltas()[i];
      if (decoder.timestamps()[i] >= timestamp && offset >= start) {
        return OptionalLong.of(offset);
      }
    }
    return OptionalLong.empty();
  }
}
