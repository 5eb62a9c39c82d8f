package io.sparklog.catalog;

import io.sparklog.admin.Administration;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.spec.PartlogException;
import io.sparklog.upkeep.Uninterrupted;
import java.io.IOException;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Function;

/** SQL's statements about one topic. They do it as the procedures do. */
final class TopicStatements {
  private final Root root;
  private final String topic;

  public TopicStatements(Root root, String topic) {
    this.root = root;
    this.topic = topic;
  }

  /**
   * CREATE TABLE.
   *
   * @param config all of the configuration
   * @return the identity of the topic
   * @throws PartlogException TOPIC_EXISTS, FOREIGN_SEGMENTS; what {@link Root#requireWritable} and {@link Root#prepare} throw
   */
  public String create(TopicConfig config) throws IOException {
    String topicId = Operations.identity();
    run(administration -> {
      root.prepare();
      administration.create(config, topicId);
      return null;
    });
    root.listAgain();
    return topicId;
  }

  /** DROP TABLE. @throws PartlogException TOPIC_NOT_FOUND */
  public void drop() throws IOException {
    run(administration -> administration.delete(false));
    root.listAgain();
  }

  /**
   * TRUNCATE TABLE, and DELETE of the first records of partitions.
   *
   * @param topicId of the topic that the statement was planned for
   * @param offsets the first offset to keep, by partition; an offset above the end counts as the end
   * @throws PartlogException TOPIC_NOT_FOUND, TOPIC_RECREATED
   */
  public void deleteBelow(String topicId, SortedMap<Integer, Long> offsets) throws IOException {
    State state = root.state(topic);
    SortedMap<Integer, Long> starts = new TreeMap<>();
    offsets.forEach((partition, offset) -> starts.put(partition, Math.min(offset, state.end(partition))));
    run(administration -> administration.deleteRecordsOf(topicId, starts));
  }

  /**
   * ALTER TABLE … SET TBLPROPERTIES.
   *
   * @param topicId of the topic that the statement was planned for
   * @return the topic as the statement left it
   * @throws PartlogException TOPIC_NOT_FOUND, TOPIC_RECREATED, OPTION_VALUE
   */
  public State alter(String topicId, Map<String, String> config) throws IOException {
    return run(administration -> administration.alterOf(topicId, config).is());
  }

  private <T> T run(Function<Administration, T> statement) throws IOException {
    root.requireWritable();
    return Uninterrupted.run(() -> statement.apply(new Administration(Operations.work(root.topic(topic)))));
  }
}
