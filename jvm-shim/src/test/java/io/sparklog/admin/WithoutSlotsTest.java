package io.sparklog.admin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.CommitsOverFaults;
import io.sparklog.kit.Writes;
import io.sparklog.log.Checkpoint;
import io.sparklog.log.Root;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.Names;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestOutputStream;
import java.security.MessageDigest;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** A topic that is never re-routed: its files have no byte for slots. */
final class WithoutSlotsTest extends CommitsOverFaults {
  /**
   * SHA-256 of the names and bytes of all files. Programs that did not know slots wrote the same fields, in another order. A change of
   * these files needs a reason in its commit.
   */
  private static final String FILES = "2d1f42446eed51ea6562fa8805bf52fb4547427f96fe5a33a74f63e97fe16ce6";

  private final Clock clock = Clock.fixed(Instant.ofEpochMilli(1_700_000_100_000L), ZoneOffset.UTC);

  private TopicWork work() {
    return new TopicWork(new TopicLog(store.store(), "t"), clock, random);
  }

  private void write(Writes writes, Once once, long mergeBytes) throws IOException {
    Root driver = new Root(store.store());
    TopicPlan plan = TopicPlan.of("t", driver.topic("t").latest(), Writes.config());
    String txn = Names.identity(random);
    new TopicCommits(driver, txn, topic -> once, clock, random).merging(mergeBytes).commit(plan, writes.reports(driver.store(), plan, txn));
  }

  private String files() throws Exception {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    try (Stream<Path> found = Files.walk(root);
        DigestOutputStream out = new DigestOutputStream(DigestOutputStream.nullOutputStream(), digest)) {
      for (Path file : found.filter(Files::isRegularFile).sorted().toList()) {
        digest.update((root.relativize(file) + " " + Files.size(file) + "\n").getBytes(StandardCharsets.UTF_8));
        Files.copy(file, out);
      }
    }
    return HexFormat.of().formatHex(digest.digest());
  }

  @Test
  void itsFilesAreThoseOfBefore() throws Exception {
    Writes keyed = new Writes("x", 2, 300, 0, 1 << 12, 64 << 20, 7, 40);
    Writes small = new Writes("y", 3, 100, 0, 1 << 10, 64 << 20, 0, 11);
    for (long epoch = 0; epoch < 12; epoch++) {
      write(keyed, Once.epoch("q", epoch, null), 1 << 20);
      write(small, Once.NEVER, 1 << 20);
    }
    Administration operator = new Administration(work());
    write(keyed, Once.NEVER, 0);
    write(small, Once.NEVER, 0);
    operator.configure(Map.of("retention.ms", "86400000000"));
    operator.deleteRecords(new TreeMap<>(Map.of(0, 100L, 3, -1L)), new TreeMap<>(), false);
    work().merge(0);
    Checkpoint.write(store.store(), state(), Names.identity(random));
    write(keyed, Once.epoch("q", 12, null), 0);
    assertTrue(state().routing().isModulo());
    operator.delete(false);
    write(keyed, Once.NEVER, 0);
    assertTrue(state().routing().isModulo());
    assertEquals(FILES, files());
  }
}
