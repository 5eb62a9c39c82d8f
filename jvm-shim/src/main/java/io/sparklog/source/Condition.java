package io.sparklog.source;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.BinaryOperator;

/**
 * What is asked of a record's topic, partition, offset and time. There is no "not": it is moved into the leaves, whose columns are never
 * null.
 *
 * <p>A condition is first brought to one partition with {@link #at}; what is left of it is about offsets and times only.
 */
abstract class Condition implements Serializable {
  static final Condition TRUE = new Constant(true);
  static final Condition FALSE = new Constant(false);

  private Condition() {}

  static Condition partition(Intervals partitions) {
    return new Partition(partitions);
  }

  static Condition offset(Intervals offsets) {
    return new Offset(offsets);
  }

  /** @param micros times as Spark has them */
  static Condition time(Intervals micros) {
    return new Time(micros);
  }

  /** Topics in {@code topics}, or if {@code others} all but these. */
  static Condition topic(Set<String> topics, boolean others) {
    return new Topic(topics, others);
  }

  static Condition all(List<Condition> conditions) {
    return several(conditions, true);
  }

  static Condition any(List<Condition> conditions) {
    return several(conditions, false);
  }

  private static Condition several(List<Condition> conditions, boolean all) {
    List<Condition> left = new ArrayList<>();
    for (Condition condition : conditions) {
      if (condition instanceof Constant constant) {
        if (constant.value != all) {
          return condition;
        }
      } else {
        left.add(condition);
      }
    }
    return left.isEmpty() ? (all ? TRUE : FALSE) : left.size() == 1 ? left.get(0) : new Several(left, all);
  }

  /** What it comes to for the records of one partition. */
  abstract Condition at(String topic, int partition);

  /** The offsets that records may have which meet it; others do not. Exactly these if it is not {@link #isAboutTime}. */
  abstract Intervals offsets();

  abstract boolean isAboutTime();

  /** Whether a record with such an offset and time may meet it: false only if none can. All bounds are included. */
  abstract boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros);

  /** Whether each record with such an offset and time meets it: true only if all do. */
  abstract boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros);

  /** Whether a record meets it. */
  abstract boolean isMet(long offset, long micros);

  private static final class Constant extends Condition {
    private final boolean value;

    private Constant(boolean value) {
      this.value = value;
    }

    @Override
    Condition at(String topic, int partition) {
      return this;
    }

    @Override
    Intervals offsets() {
      return value ? Intervals.ALL : Intervals.NONE;
    }

    @Override
    boolean isAboutTime() {
      return false;
    }

    @Override
    boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return value;
    }

    @Override
    boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return value;
    }

    @Override
    boolean isMet(long offset, long micros) {
      return value;
    }
  }

  /** About what is the same for all records of a partition; has to be brought to one before anything else is asked. */
  private abstract static class OfPartition extends Condition {
    abstract boolean holds(String topic, int partition);

    @Override
    final Condition at(String topic, int partition) {
      return holds(topic, partition) ? TRUE : FALSE;
    }

    @Override
    final Intervals offsets() {
      throw new IllegalStateException("not brought to a partition");
    }

    @Override
    final boolean isAboutTime() {
      throw new IllegalStateException("not brought to a partition");
    }

    @Override
    final boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      throw new IllegalStateException("not brought to a partition");
    }

    @Override
    final boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      throw new IllegalStateException("not brought to a partition");
    }

    @Override
    final boolean isMet(long offset, long micros) {
      throw new IllegalStateException("not brought to a partition");
    }
  }

  private static final class Partition extends OfPartition {
    private final Intervals partitions;

    private Partition(Intervals partitions) {
      this.partitions = partitions;
    }

    @Override
    boolean holds(String topic, int partition) {
      return partitions.contains(partition);
    }
  }

  private static final class Topic extends OfPartition {
    private final Set<String> topics;
    private final boolean others;

    private Topic(Set<String> topics, boolean others) {
      this.topics = topics;
      this.others = others;
    }

    @Override
    boolean holds(String topic, int partition) {
      return topics.contains(topic) != others;
    }
  }

  private static final class Offset extends Condition {
    private final Intervals offsets;

    private Offset(Intervals offsets) {
      this.offsets = offsets;
    }

    @Override
    Condition at(String topic, int partition) {
      return this;
    }

    @Override
    Intervals offsets() {
      return offsets;
    }

    @Override
    boolean isAboutTime() {
      return false;
    }

    @Override
    boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return offsets.meets(firstOffset, lastOffset);
    }

    @Override
    boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return offsets.covers(firstOffset, lastOffset);
    }

    @Override
    boolean isMet(long offset, long micros) {
      return offsets.contains(offset);
    }
  }

  private static final class Time extends Condition {
    private final Intervals micros;

    private Time(Intervals micros) {
      this.micros = micros;
    }

    @Override
    Condition at(String topic, int partition) {
      return this;
    }

    @Override
    Intervals offsets() {
      return Intervals.ALL;
    }

    @Override
    boolean isAboutTime() {
      return true;
    }

    @Override
    boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return micros.meets(firstMicros, lastMicros);
    }

    @Override
    boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return micros.covers(firstMicros, lastMicros);
    }

    @Override
    boolean isMet(long offset, long time) {
      return micros.contains(time);
    }
  }

  /** All of them, or any. */
  private static final class Several extends Condition {
    private final ArrayList<Condition> conditions;
    private final boolean all;

    private Several(List<Condition> conditions, boolean all) {
      this.conditions = new ArrayList<>(conditions);
      this.all = all;
    }

    @Override
    Condition at(String topic, int partition) {
      return several(conditions.stream().map(condition -> condition.at(topic, partition)).toList(), all);
    }

    @Override
    Intervals offsets() {
      BinaryOperator<Intervals> join = all ? Intervals::and : Intervals::or;
      return conditions.stream().map(Condition::offsets).reduce(join).orElseThrow();
    }

    @Override
    boolean isAboutTime() {
      return conditions.stream().anyMatch(Condition::isAboutTime);
    }

    @Override
    boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      for (Condition condition : conditions) {
        if (condition.canMeet(firstOffset, lastOffset, firstMicros, lastMicros) != all) {
          return !all;
        }
      }
      return all;
    }

    @Override
    boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      for (Condition condition : conditions) {
        if (condition.mustMeet(firstOffset, lastOffset, firstMicros, lastMicros) != all) {
          return !all;
        }
      }
      return all;
    }

    @Override
    boolean isMet(long offset, long micros) {
      for (Condition condition : conditions) {
        if (condition.isMet(offset, micros) != all) {
          return !all;
        }
      }
      return all;
    }
  }
}
