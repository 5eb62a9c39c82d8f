package io.sparklog.query;

import io.sparklog.log.ReadableTopics;
import io.sparklog.spec.Option;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * One end of a read by its options: a time for all partitions, a time for each partition, or an offset for each partition. The first given
 * option in this order counts. The caller gives the meaning of negative numbers.
 */
public final class Bound {
  /** Two times and then offsets, in the order in which they count. */
  private static final List<String> STARTING = List.of("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets");

  private static final List<String> ENDING = List.of("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets");

  private final String option;
  private final String text;
  private final boolean byTime;
  private final Long forAll;
  private final TreeMap<String, TreeMap<Integer, Long>> byPartition;

  private Bound(Options options, List<String> keys) {
    option = keys.stream().filter(options::given).findFirst().orElse(keys.get(2));
    text = options.text(option);
    byTime = !option.equals(keys.get(2));
    forAll = option.equals(keys.get(0)) ? Long.valueOf(options.number(option)) : null;
    byPartition = !text.startsWith("{") ? null : byTime ? PartitionJson.times(option, text) : PartitionJson.numbers(option, text);
  }

  /** @throws PartlogException OPTION_VALUE, PARTITION_NOT_FOUND if the option does not name exactly the partitions of {@code topics} */
  static Bound starting(Options options, ReadableTopics root, List<Subscription.Subscribed> topics) {
    return new Bound(options, STARTING).of(root, topics);
  }

  /** As {@link #starting}. */
  static Bound ending(Options options, ReadableTopics root, List<Subscription.Subscribed> topics) {
    return new Bound(options, ENDING).of(root, topics);
  }

  /** The given options that say where a read starts. */
  public static List<String> givenStarts(Options options) {
    return STARTING.stream().filter(options::given).toList();
  }

  private Bound of(ReadableTopics root, List<Subscription.Subscribed> topics) {
    if (byPartition == null) {
      return this;
    }
    Map<String, TreeMap<Integer, Long>> left = new TreeMap<>();
    byPartition.forEach((topic, numbers) -> left.put(topic, new TreeMap<>(numbers)));
    for (Subscription.Subscribed topic : topics) {
      String name = topic.state().topic();
      TreeMap<Integer, Long> numbers = left.getOrDefault(name, new TreeMap<>());
      for (int partition : topic.partitions()) {
        if (numbers.remove(partition) == null) {
          throw refused("it does not name partition " + partition + " of topic " + name
              + ", which is read; give an offset or a time for each partition that is read");
        }
      }
      if (!numbers.isEmpty()) {
        topic.state().requirePartition(option, root.location(), numbers.lastKey());
        throw refused(
            "it names partition " + numbers.firstKey() + " of topic " + name + ", which is not read; leave it out, or read it too");
      }
      left.remove(name);
    }
    for (String topic : left.keySet()) {
      throw refused("it names topic " + topic + ", which is not read; leave it out, or read it too");
    }
    return this;
  }

  /** The option that counts. */
  String option() {
    return option;
  }

  /** Whether the numbers are times in ms since 1970; otherwise they are offsets. */
  boolean isByTime() {
    return byTime;
  }

  /** Whether it is the word {@code latest}. */
  boolean isLatest() {
    return text.equals("latest");
  }

  /** The number for a partition; null if the option gives none, as {@code earliest} and {@code latest} do. */
  Long number(String topic, int partition) {
    return forAll != null ? forAll : byPartition == null ? null : byPartition.get(topic).get(partition);
  }

  /** OPTION_VALUE for the option that counts. */
  PartlogException refused(String why) {
    return Option.invalidValue(option, text, why);
  }
}
