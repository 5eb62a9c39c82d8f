package io.sparklog.read;

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
public abstract class Condition implements Serializable {
  public static final Condition TRUE = new Constant(true);
  public static final Condition FALSE = new Constant(false);

  private Condition() {}

  public static Condition partition(Intervals partitions) {
    return new Partition(partitions);
  }

  public static Condition offset(Intervals offsets) {
    return new Offset(offsets);
  }

  /** @param micros times as Spark has them */
  public static Condition time(Intervals micros) {
    return new Time(micros);
  }

  /** Topics in {@code topics}, or if {@code others} all but these. */
  public static Condition topic(Set<String> topics, boolean others) {
    return new Topic(topics, others);
  }

  public static Condition all(List<Condition> conditions) {
    return several(conditions, true);
  }

  public static Condition any(List<Condition> conditions) {
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
  public abstract Condition at(String topic, int partition);

  /** The offsets that records may have which meet it; others do not. Exactly these if it is not {@link #isAboutTime}. */
  public abstract Intervals offsets();

  public abstract boolean isAboutTime();

  /** Whether a record with such an offset and time may meet it: false only if none can. All bounds are included. */
  public abstract boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros);

  /** Whether each record with such an offset and time meets it: true only if all do. */
  public abstract boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros);

  /** Whether a record meets it. */
  public abstract boolean isMet(long offset, long micros);

  private static final class Constant extends Condition {
    private final boolean value;

    private Constant(boolean value) {
      this.value = value;
    }

    @Override
    public Condition at(String topic, int partition) {
      return this;
    }

    @Override
    public Intervals offsets() {
      return value ? Intervals.ALL : Intervals.NONE;
    }

    @Override
    public boolean isAboutTime() {
      return false;
    }

    @Override
    public boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return value;
    }

    @Override
    public boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return value;
    }

    @Override
    public boolean isMet(long offset, long micros) {
      return value;
    }
  }

  /** About what is the same for all records of a partition; has to be brought to one before anything else is asked. */
  private abstract static class OfPartition extends Condition {
    abstract boolean holds(String topic, int partition);

    @Override
    public final Condition at(String topic, int partition) {
      return holds(topic, partition) ? TRUE : FALSE;
    }

    @Override
    public final Intervals offsets() {
      throw new IllegalStateException("not brought to a partition");
    }

    @Override
    public final boolean isAboutTime() {
      throw new IllegalStateException("not brought to a partition");
    }

    @Override
    public final boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      throw new IllegalStateException("not brought to a partition");
    }

    @Override
    public final boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      throw new IllegalStateException("not brought to a partition");
    }

    @Override
    public final boolean isMet(long offset, long micros) {
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
    public Condition at(String topic, int partition) {
      return this;
    }

    @Override
    public Intervals offsets() {
      return offsets;
    }

    @Override
    public boolean isAboutTime() {
      return false;
    }

    @Override
    public boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return offsets.meets(firstOffset, lastOffset);
    }

    @Override
    public boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return offsets.covers(firstOffset, lastOffset);
    }

    @Override
    public boolean isMet(long offset, long micros) {
      return offsets.contains(offset);
    }
  }

  private static final class Time extends Condition {
    private final Intervals micros;

    private Time(Intervals micros) {
      this.micros = micros;
    }

    @Override
    public Condition at(String topic, int partition) {
      return this;
    }

    @Override
    public Intervals offsets() {
      return Intervals.ALL;
    }

    @Override
    public boolean isAboutTime() {
      return true;
    }

    @Override
    public boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return micros.meets(firstMicros, lastMicros);
    }

    @Override
    public boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return micros.covers(firstMicros, lastMicros);
    }

    @Override
    public boolean isMet(long offset, long time) {
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
    public Condition at(String topic, int partition) {
      return several(conditions.stream().map(condition -> condition.at(topic, partition)).toList(), all);
    }

    @Override
    public Intervals offsets() {
      BinaryOperator<Intervals> join = all ? Intervals::and : Intervals::or;
      return conditions.stream().map(Condition::offsets).reduce(join).orElseThrow();
    }

    @Override
    public boolean isAboutTime() {
      return conditions.stream().anyMatch(Condition::isAboutTime);
    }

    @Override
    public boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      for (Condition condition : conditions) {
        if (condition.canMeet(firstOffset, lastOffset, firstMicros, lastMicros) != all) {
          return !all;
        }
      }
      return all;
    }

    @Override
    public boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      for (Condition condition : conditions) {
        if (condition.mustMeet(firstOffset, lastOffset, firstMicros, lastMicros) != all) {
          return !all;
        }
      }
      return all;
    }

    @Override
    public boolean isMet(long offset, long micros) {
      for (Condition condition : conditions) {
        if (condition.isMet(offset, micros) != all) {
          return !all;
        }
      }
      return all;
    }
  }
}
