package io.sparklog.log;

import io.sparklog.segment.Names;
import java.time.Clock;
import java.util.random.RandomGenerator;

/** The means to commit changes of one topic: its log, the time, and randomness. */
public record Committers(TopicLog log, Clock clock, RandomGenerator random) {
  /** A random identity, of one attempt to change the topic, or for names of temporary files. */
  public String identity() {
    return Names.identity(random);
  }

  public Committer next() {
    return as(identity());
  }

  /** @param txn the random identity of the attempt */
  public Committer as(String txn) {
    return new Committer(log, txn, clock, random);
  }
}
