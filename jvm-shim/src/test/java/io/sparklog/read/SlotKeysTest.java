package io.sparklog.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.RemoteReads;
import io.sparklog.kit.Writes;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.storage.StoreRef;
import io.sparklog.storage.Stores;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Clock;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The sample of newest records in which keys share a slot. */
final class SlotKeysTest {
  private static final int RECORDS = 4000;

  /** A sample that is a part of a segment is read as a part, by the share of its offsets. */
  @Test
  void aLargeSegmentIsReadFromItsMiddleOn(@TempDir Path directory) throws IOException {
    RemoteReads reads = new RemoteReads(Stores.open(new StoreRef(directory.toString())));
    Root root = new Root(reads.store());
    Random random = new Random(1);
    TreeMap<String, String> config = Writes.config();
    config.put("partitions", "1");
    for (int records : new int[] {RECORDS, RECORDS / 10}) {
      String txn = Names.identity(random);
      TopicPlan plan = TopicPlan.of("t", root.topic("t").newest(), config);
      TopicCommits commits = new TopicCommits(root, txn, topic -> Once.NEVER, Clock.systemUTC(), random);
      commits.commit(plan, Writes.of("x", 1, records, 2000).reports(root.store(), plan, txn));
    }
    State state = root.newest("t").orElseThrow();
    Segment old = state.segments(0).get(0);
    Segment young = state.segments(0).get(1);
    long sample = young.bytes() + old.bytes() / 10;
    reads.clear();
    byte[] key = "k1".getBytes(StandardCharsets.UTF_8);
    int slot = state.routing().table().slot(state.config().partitioner(), key);
    Map<ByteBuffer, Long> found = SlotKeys.of(root, state, new TreeSet<>(Set.of(slot)), sample).get(slot);
    assertTrue(reads.bytes() < sample + old.bytes() / 10, () -> "read for a sample of " + sample + " bytes: " + reads.bytes());
    assertEquals(RECORDS / 5 / 7, found.get(ByteBuffer.wrap(key)), 1);
  }
}
