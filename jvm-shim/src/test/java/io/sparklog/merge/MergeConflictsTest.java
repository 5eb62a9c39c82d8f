package io.sparklog.merge;

import static io.sparklog.storage.FaultyStore.When.AFTER;
import static io.sparklog.storage.FaultyStore.When.BEFORE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.MergedTopics;
import io.sparklog.log.Committers;
import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.Segment;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.Stores;
import java.io.IOException;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Merges that others are faster than: what a merge replaces may be gone by then, or the merge too old. FORMAT.md section 7. */
final class MergeConflictsTest extends MergedTopics {
  @Test
  void aMergeThatLostItsSegmentsIsDropped() throws IOException {
    write(6, 30);
    List<String> records = records();
    Set<String> files = dataFiles();
    before("putIfAbsent " + version(6), 1, () -> assertEquals(4,
        new Merging(new Committers(new TopicLog(Stores.open(root.toString()), "t"), Clock.systemUTC(), random)).all().by()));
    assertEquals(new MergeCounts(0, 0, 0), merging().all());
    assertEquals(6, state().version());
    assertEquals(records, records());
    assertEquals(Set.of(), left(files), "what it made is deleted");
    assertTrue(dataFiles().containsAll(files), "and nothing else is");
  }

  @Test
  void aMergeThatLostARaceToAWriteIsPutAgain() throws IOException {
    write(6, 30);
    before("putIfAbsent " + version(6), 1, () -> write(1, 30));
    assertEquals(4, merging().all().by());
    assertEquals(7, state().version());
    assertEquals(8, live().size());
  }

  /** A merge of several partitions commits the part that still holds. */
  @Test
  void aMergeLosesOnlyWhatIsGone() throws IOException {
    write(6, 30);
    List<String> records = records();
    Set<String> files = dataFiles();
    before("putIfAbsent " + version(6), 1, () -> {
      State state = state();
      Segment gone = state.segments(3).get(0);
      committer(Stores.open(root.toString()))
          .commit(newest -> Optional.of(new NextVersion(newest.get(), "delete-records").raiseStart(3, gone.end())));
    });
    assertEquals(4, merging().all().by(), "three at first, then the rest of the fourth");
    assertEquals(8, state().version());
    assertEquals(Set.of(), left(files));
    assertEquals(records.stream().filter(record -> !record.startsWith("3 ")).toList(),
        records().stream().filter(record -> !record.startsWith("3 ")).toList());
  }

  @Test
  void aMergeHeedsTheHorizon() throws IOException {
    write(6, 30);
    Set<String> files = dataFiles();
    int[] races = {0};
    store.at((call, name, when) -> {
      if (call.equals("putIfAbsent") && when == BEFORE && name.endsWith(".json") && races[0]++ == 0) {
        committer(Stores.open(root.toString())).commit(newest -> Optional.of(new NextVersion(newest.get(), "vacuum").raiseHorizon(7)));
      }
    });
    Merging merging = merging();
    assertEquals(4, merging.all().by());
    assertEquals(2, races[0], "the first was planned at 6, and is dropped; the second is planned at 7");
    assertEquals(7, state().version());
    assertEquals(7, live().stream().mapToLong(segment -> Long.parseLong(segment.file().substring(5, 25))).min().getAsLong());
    assertEquals(Set.of(), left(files));
  }

  @Test
  void aMergeOfATopicThatIsGoneIsDropped() throws IOException {
    write(6, 30);
    Set<String> files = dataFiles();
    before("putIfAbsent " + version(6), 1,
        () -> committer(Stores.open(root.toString())).commit(newest -> Optional.of(NextVersion.deleting(newest.get()))));
    assertEquals(new MergeCounts(0, 0, 0), merging().all());
    State latest = new TopicLog(store.store(), "t").latest().orElseThrow();
    assertEquals(6, latest.version());
    assertTrue(latest.isDeleted());
    assertEquals(files, dataFiles());
  }

  /** The put took effect, and its answer did not say so: its files are live. */
  @Test
  void afterAnUnclearPutNothingIsDeleted() throws IOException {
    write(6, 30);
    List<String> records = records();
    store.failAll("putIfAbsent", AFTER, new IOException("the answer is lost"));
    store.failAll("read " + version(6), BEFORE, new IOException("unreadable"));
    assertEquals("COMMIT_UNKNOWN", assertThrows(PartlogException.class, () -> merging().all()).id());
    assertEquals(6, state().version());
    assertEquals(records, records());
    assertEquals(4, live().size());
  }
}
