package io.sparklog.admin;

import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.log.TopicLog;
import io.sparklog.routing.SlotTable;
import io.sparklog.spec.Option;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.Arrays;
import java.util.Collection;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Gives slots to other partitions, as few as new weights ask for. It may add partitions. FORMAT.md annex A. */
final class RerouteTopic extends AdministrativeChange {
  private static final String WEIGHTS = "weights";

  private final Map<String, String> config;
  private final boolean balances;
  private final UnaryOperator<int[]> weights;
  private boolean later;

  /**
   * @param config that changes with it; with {@code partitions} if it adds some
   * @param balances whether it is wanted though the weights are right already, if the slots are not
   * @param weights of all partitions that the topic shall have, from the weights now
   */
  private RerouteTopic(TopicLog log, State planned, Map<String, String> config, boolean balances, UnaryOperator<int[]> weights) {
    super(log, planned, "the routing");
    this.config = config;
    this.balances = balances;
    this.weights = weights;
  }

  /** @param later whether the driver of the next write makes the re-route, and this only asks for it */
  RerouteTopic asking(boolean later) {
    this.later = later;
    return this;
  }

  /**
   * Adds partitions.
   *
   * @param config to change; its keys include {@code partitions}
   * @throws PartlogException OPTION_VALUE if there are more partitions already, or there cannot be as many
   */
  static RerouteTopic grown(TopicLog log, State planned, Map<String, String> config) {
    String value = config.get(TopicConfig.PARTITIONS);
    requireAllowed(TopicConfig.PARTITIONS, value);
    int partitions = Integer.parseInt(value);
    if (partitions < planned.partitions()) {
      throw Option.invalidValue(TopicConfig.PARTITIONS, value,
          "topic " + log.topic() + " has " + planned.partitions() + " partitions, and partitions can only be added: it must not be less");
    }
    int[] before = planned.routing().weights();
    int slots = planned.routing().table().slots();
    long open = Arrays.stream(before).filter(weight -> weight > 0).count() + partitions - before.length;
    if (open > slots) {
      throw Option.invalidValue(TopicConfig.PARTITIONS, value, "topic " + log.topic() + " has " + slots + " slots for its keys, and " + open
          + " partitions would be open: take a new topic for more");
    }
    return new RerouteTopic(log, planned, config, false, was -> grown(was, partitions));
  }

  /** A new partition weighs as much as an open one on average. */
  private static int[] grown(int[] was, int partitions) {
    int mean = (int) Math.max(1, Math.round(Arrays.stream(was).filter(weight -> weight > 0).average().orElseThrow()));
    int[] weights = Arrays.copyOf(was, Math.max(was.length, partitions));
    Arrays.fill(weights, was.length, weights.length, mean);
    return weights;
  }

  /** @throws PartlogException PARTITION_NOT_FOUND; OPTION_VALUE if none is named, or none would stay open */
  static RerouteTopic closed(TopicLog log, State planned, Collection<Integer> partitions) {
    String option = TopicConfig.PARTITIONS;
    if (partitions.isEmpty()) {
      throw Option.invalidValue(option, "[]", "it must name partitions");
    }
    partitions.forEach(partition -> planned.requirePartition(option, log.store().root(), partition));
    int[] before = planned.routing().weights();
    if (IntStream.range(0, before.length).noneMatch(p -> before[p] > 0 && !partitions.contains(p))) {
      throw Option.invalidValue(option, partitions.toString(), "one partition at least must stay open for new records");
    }
    return new RerouteTopic(log, planned, Map.of(), false, was -> {
      int[] now = was.clone();
      partitions.forEach(partition -> now[partition] = 0);
      return now;
    });
  }

  /**
   * @param changes by partition
   * @throws PartlogException PARTITION_NOT_FOUND; OPTION_VALUE for a weight that is out of range, or of a closed partition
   */
  static RerouteTopic weighed(TopicLog log, State planned, SortedMap<Integer, Long> changes) {
    int[] before = planned.routing().weights();
    changes.forEach((partition, weight) -> {
      planned.requirePartition(WEIGHTS, log.store().root(), partition);
      String value = partition + ": " + weight;
      if (weight < 1 || weight > SlotTable.WEIGHT_MAX) {
        throw Option.invalidValue(WEIGHTS, value,
            "a weight must be from 1 to " + SlotTable.WEIGHT_MAX + "; CALL partlog.close_partitions gives a partition no new records");
      }
      if (before[partition] == 0) {
        throw Option.invalidValue(WEIGHTS, value, "partition " + partition + " is closed, and stays so: name open partitions");
      }
    });
    return new RerouteTopic(log, planned, Map.of(), true, was -> {
      int[] now = was.clone();
      changes.forEach((partition, weight) -> now[partition] = weight.intValue());
      return now;
    });
  }

  /** Partitions that another program has added in the meantime need not be added again. */
  @Override
  boolean isIn(State newest) {
    int[] wanted = wanted(newest);
    Optional<int[]> pending = newest.pendingWeights();
    return isRight(newest, wanted) ? pending.isEmpty() : later && pending.filter(waiting -> Arrays.equals(waiting, wanted)).isPresent();
  }

  private int[] wanted(State newest) {
    return weights.apply(newest.routing().weights());
  }

  private boolean isRight(State newest, int[] wanted) {
    boolean balanced = !balances || newest.routing().table().isBalanced(wanted);
    return Arrays.equals(newest.routing().weights(), wanted) && balanced && says(newest, config);
  }

  /** It takes the place of a re-route that waits. */
  @Override
  NextVersion change(State newest) throws IOException {
    requireRouting(newest);
    int[] wanted = wanted(newest);
    if (isRight(newest, wanted)) {
      return new NextVersion(newest, "alter").configure(Map.of(TopicConfig.PENDING_WEIGHTS, TopicConfig.NOTHING));
    }
    return later
        ? new NextVersion(newest, "alter").configure(Map.of(TopicConfig.PENDING_WEIGHTS, pending(newest, wanted)))
        : NextVersion.rerouting(log, newest, wanted, newest.routing().table().replan(wanted), config);
  }

  private String pending(State newest, int[] wanted) {
    String list = Arrays.stream(wanted).mapToObj(Integer::toString).collect(Collectors.joining(","));
    String value = newest.routing().epoch() + ":" + list;
    if (!Option.ofTopic(TopicConfig.PENDING_WEIGHTS).isCanonical(value)) {
      throw Option.invalidValue("when", "next_write", "it must be now, as the weights of " + wanted.length + " partitions take "
          + value.length() + " bytes, which are too many for the configuration of a topic");
    }
    return value;
  }
}
