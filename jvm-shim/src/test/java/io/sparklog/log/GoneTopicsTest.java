package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.kit.CommitsOverFaults;
import io.sparklog.kit.Writes;
import io.sparklog.merge.Merging;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FarStore;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Another program deletes a topic that a process has seen a moment ago, in a store behind a network. A commit of the process puts nothing
 * that would follow a version which is gone.
 */
final class GoneTopicsTest extends CommitsOverFaults {
  private FarStore far;
  private Root driver;
  private LogStore near;

  @BeforeEach
  void open() throws IOException {
    far = new FarStore(root.toString(), 16);
    driver = new Root(far.store());
    near = Stores.open(root.toString());
    write();
    write();
    far.take();
  }

  /** A write whose rows are written, and not committed. */
  private final class Write {
    private final TopicPlan plan = TopicPlan.of("t", driver.topic("t").toPlan(), Writes.config());
    private final String txn = Names.identity(random);
    private final List<TopicReport> reports = Writes.of("x", 1, 28, 0).reports(driver.store(), plan, txn);

    private Write() throws IOException {}

    private Version commit() {
      return new TopicCommits(driver, txn, topic -> Once.NEVER, Clock.systemUTC(), random).commit(plan, reports).version().orElseThrow();
    }
  }

  private Version write() throws IOException {
    return new Write().commit();
  }

  private void assertRefused(Write write) {
    PartlogException refused = assertThrows(PartlogException.class, write::commit);
    assertEquals("TOPIC_RECREATED", refused.id(), refused::getMessage);
  }

  /** Deletes all files below {@code path}, by hand. */
  private void remove(String path) throws IOException {
    try (Stream<Path> files = Files.walk(root.resolve(path))) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    }
  }

  private List<Path> files() throws IOException {
    try (Stream<Path> files = Files.walk(root)) {
      return files.filter(Files::isRegularFile).toList();
    }
  }

  private void drop() {
    new Administration(new TopicWork(new TopicLog(near, "t"), Clock.systemUTC(), random)).delete(false);
  }

  /** The ways in which another program deletes the topic, or puts another one in its place. */
  private enum Deletion {
    BY_HAND, BY_HAND_AND_ANEW, DROPPED, DROPPED_AND_ANEW
  }

  private void delete(Deletion way) throws IOException {
    switch (way) {
      case BY_HAND, BY_HAND_AND_ANEW -> remove("_partlog");
      case DROPPED, DROPPED_AND_ANEW -> drop();
    }
    if (way == Deletion.BY_HAND_AND_ANEW || way == Deletion.DROPPED_AND_ANEW) {
      commit(near, 1, null);
    }
  }

  @Test
  @Timeout(300)
  void aWriteLooksAtItsTopicWhileItsRecordsArePut() throws IOException {
    Write write = new Write();
    far.awaitAtOnce(2, "^(sync .*/pool.log|tag )");
    assertEquals(2, write.commit().version());
  }

  /** The look for the next version, when a write is planned. Then looks before the put and after it at a version that is there. */
  @Test
  void theRequestsOfAWrite() throws IOException {
    write();
    List<String> asked = far.take().stream().filter(request -> request.contains(TOPIC_FOLDER + "/0")).toList();
    assertEquals(List.of("read " + version(2), "tag " + version(0), "putIfAbsent " + version(2), "tag " + version(0)), asked);
  }

  @ParameterizedTest
  @EnumSource
  void aTopicThatIsDeletedWithinAWrite(Deletion way) throws IOException {
    Write write = new Write();
    delete(way);
    List<Path> before = files();
    assertRefused(write);
    assertEquals(before, files(), "the write leaves nothing");
    long newest = way == Deletion.BY_HAND ? -1 : new TopicLog(near, "t").latest().orElseThrow().version();
    assertEquals(newest + 1, write().version());
    assertEquals(newest + 1, state().version());
  }

  /** The plan looks for the next version alone, so it does not see that a topic was removed by hand, and the commit does. */
  @ParameterizedTest
  @EnumSource(names = {"BY_HAND", "BY_HAND_AND_ANEW"})
  void aTopicThatIsRemovedBetweenWrites(Deletion way) throws IOException {
    delete(way);
    List<Path> before = files();
    assertRefused(new Write());
    assertEquals(before, files(), "the write leaves nothing");
    assertEquals(way == Deletion.BY_HAND ? 0 : 1, write().version());
    assertEquals(way == Deletion.BY_HAND ? 1 : 2, write().version());
    assertEquals(way == Deletion.BY_HAND ? 1 : 2, state().version());
  }

  @ParameterizedTest
  @EnumSource(names = {"DROPPED", "DROPPED_AND_ANEW"})
  void aTopicThatIsDroppedBetweenWrites(Deletion way) throws IOException {
    String before = state().topicId();
    delete(way);
    String made = way == Deletion.DROPPED ? null : state().topicId();
    Version version = write();
    assertNotEquals(before, version.head().topicId());
    assertEquals(made == null ? version.head().topicId() : made, version.head().topicId());
    assertEquals(version.version(), state().version());
  }

  /** Its put is lost, and the next one follows the version of the other writer. */
  @Test
  void anotherWriterIsFirst() throws IOException {
    Write write = new Write();
    commit(near, 1, null);
    assertEquals(3, write.commit().version());
  }

  @Test
  void aMergeOfATopicThatIsRemovedPutsNothing() throws IOException {
    for (int n = 0; n < 20; n++) {
      write();
    }
    State known = driver.topic("t").latest().orElseThrow();
    Merging merging = new Merging(new Committers(driver.topic("t"), Clock.systemUTC(), random));
    for (long number = 0; number <= known.version(); number++) {
      Files.delete(root.resolve(version(number)));
    }
    far.take();
    assertEquals(Optional.empty(), merging.within(1 << 20, known.version()));
    assertTrue(far.take().stream().anyMatch(request -> request.startsWith("create ")), "there were segments to merge");
    assertEquals(List.of(), near.list(TOPIC_FOLDER).stream().filter(name -> Names.versionOf(name).isPresent()).toList());
  }

  /** A change that is refused puts nothing that could be lost, so the newest state must be known. */
  @Test
  void aTopicIsCreatedAfterAnotherProgramDroppedIt() throws IOException {
    drop();
    new Administration(new TopicWork(driver.topic("t"), Clock.systemUTC(), random)).create(TopicConfig.of(Writes.config()),
        Names.identity(random));
    assertFalse(state().isDeleted());
  }
}
