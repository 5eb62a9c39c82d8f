package io.sparklog.commits;

import java.time.Clock;
import java.util.function.Consumer;
import java.util.random.RandomGenerator;

/**
 * The common parts of the writers of all topics.
 *
 * @param committed is called with the topic after each commit
 * @param random is safe for many threads
 */
record CommitContext(CommitSettings settings, CommitThreads threads, Consumer<String> committed, Clock clock, RandomGenerator random,
    Resends resends) {
  CommitContext withoutWait() {
    return new CommitContext(settings.withoutWait(), threads, committed, clock, random, resends);
  }
}
