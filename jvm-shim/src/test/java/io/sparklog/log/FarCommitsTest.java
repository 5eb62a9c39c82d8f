package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.CommitsOverFaults;
import io.sparklog.storage.FarStore;
import io.sparklog.storage.Stores;
import io.sparklog.write.Once;
import java.io.IOException;
import java.nio.file.Files;
import java.time.Clock;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The requests of commits in a store behind a network: those that do not need each other's answers are made at once. */
@Timeout(300)
final class FarCommitsTest extends CommitsOverFaults {
  private static final int AT_ONCE = 16;

  private FarStore far;
  private Root driver;

  @BeforeEach
  void open() {
    far = new FarStore(root.toString(), AT_ONCE);
    driver = new Root(far.store());
  }

  private void commit() throws IOException {
    assertTrue(commit(driver, 1, Once.NEVER).isPresent());
  }

  /** Before the put, two listings tell that there is no topic. After the put, a third listing tells that the version is the only one. */
  @Test
  void theRequestsOfANewTopic() throws IOException {
    commit();
    List<String> requests = far.take().stream().filter(request -> !request.contains("/data/")).toList();
    String listed = "listing " + TOPIC_FOLDER;
    assertEquals(listed, requests.get(0));
    assertEquals(List.of("putIfAbsent " + version(0), listed), requests.subList(requests.size() - 2, requests.size()));
    assertTrue(requests.stream().noneMatch(request -> request.startsWith("read ") || request.startsWith("tag ")), requests::toString);
    far.take();
    assertEquals(0, driver.state("t").version());
    assertEquals(List.of("read " + version(1), "tag " + version(0)), far.take(), "the process knows the version that it has put");
  }

  /** A program that slept puts version 0 again, which a clean-up has deleted: no other version follows this one. */
  @Test
  void aVersion0OfATopicThatWasCleanedUpIsNoCommit() throws IOException {
    overtakeAndCleanUp(null);
    State other = state();
    Replay asleep = new Replay(false);
    TopicLog log = new TopicLog(far.store(), "t");
    Files.write(root.resolve(version(0)), new byte[] {'{'});
    assertEquals(false, log.isBegunBy(asleep));
    assertEquals(other.version(), log.newest().orElseThrow().version());
  }

  @Test
  void aTopicThatLoadsDelaysNoOther() throws Exception {
    commit();
    commit(Stores.open(root.toString()), 1, null);
    Root late = new Root(far.store());
    far.awaitAtOnce(2, "^(read .*/t/|exists answered)");
    Thread loading = new Thread(() -> late.topic("t").newest());
    far.take();
    loading.start();
    while (far.take().stream().noneMatch(request -> request.startsWith("read "))) {
      Thread.sleep(5);
    }
    assertEquals(List.of("t"), late.recentTopics(Clock.systemUTC()));
    assertTrue(late.topic("u").newest().isEmpty());
    far.store().exists("answered");
    loading.join();
  }

  /** Before the first write, the looks at the place of a root and above it need not wait for each other. */
  @Test
  void aNewRootIsLookedAtAtOnce() {
    far.awaitAtOnce(2, "^(exists |above )");
    driver.requireWritable();
    List<String> requests = far.take();
    assertEquals(4, requests.size(), requests::toString);
  }

  /** A file that no listing has told of is read beside others only up to its share of the memory: here 256 bytes. */
  @Test
  void aLargeVersionFileIsReadAlone() throws IOException {
    commit();
    commit();
    FarStore many = new FarStore(root.toString(), Version.BYTES_MAX / 256);
    TopicLog log = new TopicLog(many.store(), "t");
    assertEquals(1, log.newest().orElseThrow().version());
    assertEquals(1, many.take().stream().filter(("read " + version(1))::equals).count(), "the listing has told its length");
    commit();
    assertEquals(2, log.newest().orElseThrow().version());
    assertEquals(2, many.take().stream().filter(("read " + version(2))::equals).count(), "the first read has a limit");
  }
}
