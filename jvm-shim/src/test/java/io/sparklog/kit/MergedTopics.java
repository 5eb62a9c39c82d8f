package io.sparklog.kit;

import io.sparklog.format.BadBatch;
import io.sparklog.format.BatchDecoder;
import io.sparklog.log.Committers;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.merge.Merging;
import io.sparklog.segment.BatchWalk;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFile;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Topics of many small segments, and what a reader sees of them. */
public abstract class MergedTopics extends CommitsOverFaults {
  public Merging merging() {
    return new Merging(new Committers(new TopicLog(store.store(), "t"), Clock.systemUTC(), random));
  }

  /** Each write has records for each of the four partitions. */
  public void write(int commits, int records) throws IOException {
    for (int i = 0; i < commits; i++) {
      write(new Writes("w" + i, 1, records, 0, 1 << 14, 64 << 20, 0, 30), Map.of());
    }
  }

  public void write(Writes writes, Map<String, String> config) throws IOException {
    LogStore place = Stores.open(root.toString());
    TreeMap<String, String> all = Writes.config();
    all.putAll(config);
    Root driver = new Root(place);
    TopicPlan plan = TopicPlan.of("t", driver.topic("t").newest(), all);
    String txn = Names.identity(random);
    new TopicCommits(driver, txn, topic -> Once.NEVER, Clock.systemUTC(), random).commit(plan, writes.reports(place, plan, txn));
  }

  /** All that a reader can tell of each record, by partition and offset; or the error of the segment that it is in. */
  public List<String> records() throws IOException {
    State state = state();
    List<String> records = new ArrayList<>();
    BatchDecoder decoder = new BatchDecoder(state.config().decompressedBytesMax());
    for (int p = 0; p < state.partitions(); p++) {
      for (Segment segment : state.segments(p)) {
        try {
          add(records, segment, decoder);
        } catch (PartlogException e) {
          records.add(p + " " + segment.base() + " to " + segment.end() + " " + e.id());
        }
      }
    }
    return records;
  }

  private void add(List<String> records, Segment segment, BatchDecoder decoder) throws IOException {
    List<String> found = new ArrayList<>();
    try (SegmentFile file = SegmentFile.open(Stores.open(root.toString()), "t", segment)) {
      BatchWalk walk = new BatchWalk(file);
      while (walk.next()) {
        byte[] batch = new byte[(int) walk.bytes()];
        file.read(walk.position(), batch, 0, batch.length);
        try {
          decoder.decode(batch, 0, batch.length);
        } catch (BadBatch e) {
          throw file.corrupt(walk.position(), e);
        }
        for (int i = 0; i < decoder.count(); i++) {
          found.add(segment.partition() + " " + (walk.base() + decoder.offsetDeltas()[i]) + " " + decoder.timestamps()[i] + " "
              + decoder.isLogAppendTime() + " " + text(decoder, decoder.keyAt()[i], decoder.keyLengths()[i]) + " "
              + text(decoder, decoder.valueAt()[i], decoder.valueLengths()[i]) + " "
              + text(decoder, decoder.headersAt()[i], decoder.headersEnd()[i] - decoder.headersAt()[i]));
        }
      }
      walk.requireHeaderCrc();
    }
    records.addAll(found);
  }

  private static String text(BatchDecoder decoder, int at, int length) {
    return length < 0 ? "null" : new String(decoder.data(), at, length, StandardCharsets.ISO_8859_1);
  }

  public List<Segment> live() {
    State state = state();
    return IntStream.range(0, state.partitions()).boxed().flatMap(p -> state.segments(p).stream()).toList();
  }

  public Set<String> dataFiles() throws IOException {
    try (Stream<Path> files = Files.walk(root.resolve(TOPIC_FOLDER).resolve("data"))) {
      return new TreeSet<>(files.filter(Files::isRegularFile).map(file -> root.resolve(TOPIC_FOLDER).relativize(file).toString()).toList());
    }
  }

  /** Data files that no live segment names, among those of merges; and folders that are empty. */
  public Set<String> left(Set<String> before) throws IOException {
    Set<String> left = dataFiles();
    left.removeAll(before);
    live().forEach(segment -> left.remove(segment.file()));
    try (Stream<Path> folders = Files.list(root.resolve(TOPIC_FOLDER).resolve("data"))) {
      folders.filter(folder -> folder.toFile().list().length == 0).forEach(folder -> left.add(folder.toString()));
    }
    return left;
  }
}
