package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.json.Damaged;
import io.sparklog.segment.Names;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The fields that version files and checkpoints share. */
final class TopicHeadTest {
  private static final Features PRODUCERS = Features.NONE.and(List.of(Feature.PRODUCERS));

  private static final Map<String, Object> VALUES = Map.of("features", PRODUCERS, "topic", "t", "topicId", Names.identity(new Random(1)),
      "version", 3L, "time", 4L, "horizon", 5L, "boundary", 2L, "deleted", true);

  /** Another value for each component. */
  private static final Map<String, Object> OTHERS = Map.of("features", Features.NONE, "topic", "u", "topicId",
      Names.identity(new Random(2)), "version", 4L, "time", 5L, "horizon", 6L, "boundary", 3L, "deleted", false);

  /** The head with these values, by the names of its components. */
  private static TopicHead head(Map<String, Object> values) throws ReflectiveOperationException {
    Object[] inOrder = Arrays.stream(TopicHead.class.getRecordComponents()).map(component -> values.get(component.getName())).toArray();
    return (TopicHead) TopicHead.class.getDeclaredConstructors()[0].newInstance(inOrder);
  }

  @Test
  void aHeadThatIsPutIsParsed() throws ReflectiveOperationException, Damaged {
    for (Map<String, Object> values : List.of(VALUES, OTHERS)) {
      TopicHead put = head(values);
      TopicHead parsed = TopicHead.parse(put.toJson(), "a file", put.topic(), put.version());
      assertTrue(put.agreesWith(parsed));
    }
  }

  @Test
  void headsThatDifferInOneFieldDoNotAgree() throws ReflectiveOperationException {
    assertEquals(TopicHead.class.getRecordComponents().length, OTHERS.size());
    for (Map.Entry<String, Object> other : OTHERS.entrySet()) {
      Map<String, Object> values = new HashMap<>(VALUES);
      values.put(other.getKey(), other.getValue());
      assertFalse(head(VALUES).agreesWith(head(values)), other.getKey());
    }
  }

  @Test
  void theLocationOfTheFileIsNotCompared() throws ReflectiveOperationException {
    Map<String, Object> values = new HashMap<>(VALUES);
    values.put("features", new Features(PRODUCERS.entries(), "another file"));
    assertTrue(head(VALUES).agreesWith(head(values)));
  }
}
