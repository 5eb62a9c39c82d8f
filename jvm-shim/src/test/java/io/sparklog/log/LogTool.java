package io.sparklog.log;

import io.sparklog.format.BadBatch;
import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.zip.CRC32C;

/**
 * Writes and reads topics through the log alone, in a process that starts in a fraction of a second: what the tests of the protocol kill
 * and race.
 *
 * <p>{@code append root=… topic=… tag=… [commits=1] [tasks=2] [records=10] [big=<bytes of task 0's values>] [query=… epoch=…]
 * [partitions=4] [keys=7] [seed=1] [<topic option>=…]},
 * {@code read root=… topic=…}, {@code publish root=… topic=…}, {@code states root=…}, {@code bits root=… topic=… file=…}, {@code walk
 * root=… topic=… seconds=…}.
 */
public final class LogTool {
  private final Map<String, String> arguments = new HashMap<>();
  private final LogStore store;
  private final Root root;
  private final TopicLog log;

  private LogTool(String[] words) {
    for (int i = 1; i < words.length; i++) {
      String[] parts = words[i].split("=", 2);
      arguments.put(parts[0], parts[1]);
    }
    store = Stores.open(text("root", null));
    root = new Root(store);
    log = root.topic(text("topic", "t"));
  }

  public static void main(String[] words) throws Exception {
    LogTool tool = new LogTool(words);
    switch (words[0]) {
      case "append" -> tool.append();
      case "read" -> tool.read();
      case "states" -> tool.states();
      case "bits" -> tool.bits();
      case "walk" -> tool.walk();
      case "publish" -> System.out.println("published " + Publisher.publish(tool.log, Names.identity(new Random())));
      default -> throw new IllegalArgumentException(words[0]);
    }
  }

  private String text(String key, String otherwise) {
    return arguments.getOrDefault(key, otherwise);
  }

  private int number(String key, int otherwise) {
    return Integer.parseInt(text(key, Integer.toString(otherwise)));
  }

  /** Prints {@code done <tag>-<commit> <version>} after each commit. */
  private void append() throws IOException {
    TreeMap<String, String> config = Writes.config();
    config.replaceAll(this::text);
    Random random = new Random(Long.parseLong(text("seed", Long.toString(System.nanoTime()))));
    for (int commit = 0; commit < number("commits", 1); commit++) {
      String txn = Names.identity(random);
      TopicPlan plan = TopicPlan.of(log.topic(), log.newest(), config);
      Writes writes = new Writes(text("tag", "x") + "-" + commit, number("tasks", 2), number("records", 10), number("big", 0),
          number("batch", 1 << 14), number("buffer", 64 << 20), number("fall", 0), number("keys", 7));
      Query query = text("query", null) == null ? null : new Query(text("query", null), number("epoch", 0) + commit);
      TopicCommits commits = new TopicCommits(root, txn, query, Clock.systemUTC(), random);
      long version = commits.commit(plan, writes.pieces(store, plan, txn))
          .map(Version::version)
          .orElseGet(() -> log.newest().orElseThrow().version());
      System.out.println("done " + text("tag", "x") + "-" + commit + " " + version);
      System.out.flush();
    }
  }

  /**
   * Prints {@code <partition> <offset> <value up to its padding>} for every record, then {@code version <n> id <topic id>}. Checks all that
   * can be checked.
   */
  private void read() throws IOException {
    Optional<State> newest = log.newest();
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    if (newest.isEmpty()) {
      out.println("none");
      out.flush();
      return;
    }
    State state = newest.get();
    BatchDecoder decoder = new BatchDecoder(state.config().decompressedBytesMax());
    for (int p = 0; p < state.partitions(); p++) {
      long expected = state.start(p);
      for (Segment segment : state.segments(p)) {
        require(segment.base() == expected, "a gap before " + segment);
        print(segment, decoder, out);
        expected = segment.end();
      }
      require(expected == state.end(p), "partition " + p + " ends at " + expected);
    }
    out.println("version " + state.version() + " id " + state.topicId());
    out.flush();
  }

  private void print(Segment segment, BatchDecoder decoder, PrintStream out) throws IOException {
    byte[] bytes = new byte[(int) segment.bytes()];
    CRC32C headerCrc = new CRC32C();
    int batches = 0;
    try (SegmentFile file = SegmentFile.open(store, log.topic(), segment)) {
      file.read(segment.position(), bytes, 0, bytes.length);
      for (BatchWalk walk = new BatchWalk(file); walk.next(); batches++) {
        int at = (int) (walk.position() - segment.position());
        decoder.decode(bytes, at, (int) walk.bytes());
        BatchHeader.addTo(headerCrc, bytes, at, segment.dense());
        for (int i = 0; i < decoder.count(); i++) {
          String value = new String(decoder.data(), decoder.valueAt()[i], decoder.valueLengths()[i], StandardCharsets.UTF_8)
              .replaceAll("v+$", "");
          out.println(segment.partition() + " " + (walk.base() + decoder.offsetDeltas()[i]) + " " + value);
        }
      }
    } catch (BadBatch e) {
      throw new IllegalStateException(segment.toString(), e);
    }
    require((int) headerCrc.getValue() == segment.headerCrc() && batches == segment.batches(), "headerCrc or batches differ in " + segment);
  }

  /** Walks the newest segment of each partition again and again, while others write; prints {@code walks <n> batches <n> unstamped <n>}. */
  private void walk() throws IOException {
    long until = System.nanoTime() + number("seconds", 1) * 1_000_000_000L;
    long walks = 0;
    long batches = 0;
    long unstamped = 0;
    while (System.nanoTime() < until) {
      State state = log.newest().orElse(null);
      for (int p = 0; state != null && p < state.partitions(); p++) {
        List<Segment> segments = state.segments(p);
        if (!segments.isEmpty()) {
          Segment newest = segments.get(segments.size() - 1);
          try (SegmentFile file = SegmentFile.open(store, log.topic(), newest)) {
            for (BatchWalk walk = new BatchWalk(file); walk.next(); batches++) {
              unstamped += BatchHeader.baseOffset(walk.buffer(), walk.at()) == walk.base() ? 0 : 1;
            }
          }
          walks++;
        }
      }
    }
    System.out.println("walks " + walks + " batches " + batches + " unstamped " + unstamped);
  }

  /** For each topic under the root prints its name and {@code ok}, or the error that its state is. */
  private void states() throws IOException {
    Root root = new Root(store);
    for (String topic : root.topics()) {
      String found;
      try {
        found = root.topic(topic).newest().isPresent() ? "ok" : "none";
      } catch (PartlogException e) {
        found = e.id();
      }
      System.out.println(topic + " " + found);
    }
  }

  /**
   * Flips each bit of a file in the topic's folder, one at a time, and prints how often the state was what it is without that, another, or
   * an error.
   */
  private void bits() throws IOException {
    Path file = Path.of(store.location(Names.topicFile(log.topic(), text("file", null))));
    byte[] bytes = Files.readAllBytes(file);
    String right = everything(log.newest().orElseThrow());
    Map<String, Integer> found = new TreeMap<>();
    for (int bit = 0; bit < 8 * bytes.length; bit++) {
      bytes[bit >> 3] ^= (byte) (1 << (bit & 7));
      Files.write(file, bytes);
      bytes[bit >> 3] ^= (byte) (1 << (bit & 7));
      String what;
      try {
        what = everything(new TopicLog(store, log.topic()).newest().orElseThrow()).equals(right) ? "same" : "another";
      } catch (PartlogException e) {
        what = e.id();
      }
      found.merge(what, 1, Integer::sum);
    }
    Files.write(file, bytes);
    found.forEach((what, times) -> System.out.println(what + " " + times));
  }

  private static String everything(State state) {
    StringBuilder all = new StringBuilder(state.topicId() + state.version() + state.hash() + state.config().entries() + state.epochs());
    for (int p = 0; p < state.partitions(); p++) {
      all.append(state.start(p)).append(' ').append(state.end(p)).append(state.segments(p));
    }
    return all.toString();
  }

  private static void require(boolean right, String otherwise) {
    if (!right) {
      throw new IllegalStateException(otherwise);
    }
  }
}
