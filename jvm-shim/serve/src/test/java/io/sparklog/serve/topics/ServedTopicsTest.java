package io.sparklog.serve.topics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Drivers;
import io.sparklog.log.State;
import io.sparklog.storage.FarStore;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The topics of a root whose store answers each question by a request. */
@Timeout(120)
final class ServedTopicsTest extends Drivers {
  private static Map<String, Optional<State>> recent(ServedTopics topics, String... names) {
    Map<String, Optional<State>> found = new HashMap<>();
    topics.readRecent(List.of(names), found::put);
    return found;
  }

  /** A topic that was seen a moment ago is not asked for again; a topic that does not exist is, since it may exist now. */
  @Test
  void statesOfAMomentAgoCostNoRequest() throws Exception {
    new Driver().commit();
    FarStore far = new FarStore(folder.toString(), 16);
    ServedTopics topics = new ServedTopics(new Driver(far.store()).root, clock());
    assertEquals(Set.of("t", "absent"), recent(topics, "t", "absent", "not/legal").keySet());
    long version = recent(topics, "t").get("t").orElseThrow().version();
    new Driver().commit();
    far.take();
    assertEquals(version, recent(topics, "t").get("t").orElseThrow().version());
    assertEquals(List.of(), far.take());
    assertEquals(Optional.empty(), recent(topics, "absent").get("absent"));
    assertTrue(!far.take().isEmpty());
  }
}
