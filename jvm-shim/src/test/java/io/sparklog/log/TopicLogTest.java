package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** How the newest state of a topic is found while others commit, and while version files are deleted. FORMAT.md section 9. */
final class TopicLogTest extends CommitsOverFaults {
  private static String version(long number) {
    return TOPIC_FOLDER + "/" + Names.versionFile(number);
  }

  @Test
  void nothingNewCostsTwoLooks() throws IOException {
    commit(1, null);
    commit(1, null);
    TopicLog log = new TopicLog(store.store(), "t");
    State known = log.newest().orElseThrow();
    store.calls().clear();
    assertSame(known, log.newest().orElseThrow());
    assertEquals(List.of("tag " + version(2), "tag " + version(1)), store.calls());
  }

  @Test
  void oneCommitCostsOneRead() throws IOException {
    commit(1, null);
    TopicLog log = new TopicLog(store.store(), "t");
    log.newest();
    commit(1, null);
    store.calls().clear();
    assertEquals(1, log.newest().orElseThrow().version());
    List<String> calls = store.calls().stream().filter(call -> !call.startsWith("location ")).toList();
    assertEquals(List.of("tag " + version(1), "read " + version(1), "tag " + version(2), "tag " + version(0)), calls);
  }

  /** With as many versions, each as long as the one before: an inode is used again at once. */
  @Test
  void aTopicThatWasMadeAgainIsAnotherOne() throws IOException, InterruptedException {
    LogStore place = Stores.open(root.toString());
    commit(place, 1, null);
    TopicLog log = new TopicLog(place, "t");
    State known = log.newest().orElseThrow();
    Thread.sleep(20); // A file's time goes in steps of the kernel's.
    try (Stream<Path> files = Files.walk(root)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    }
    assertEquals(Optional.empty(), log.newest());
    commit(place, 1, null);
    State another = log.newest().orElseThrow();
    assertEquals(known.version(), another.version());
    assertNotEquals(known.topicId(), another.topicId());
  }
}
