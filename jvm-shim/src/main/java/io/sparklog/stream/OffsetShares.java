package io.sparklog.stream;

import java.math.BigInteger;
import java.util.Arrays;
import java.util.Comparator;
import java.util.stream.IntStream;

/**
 * Shares a number of offsets among partitions: exactly that number in all, by the waiting offsets of each partition. No partition gets so
 * little that it would wait for ever.
 */
final class OffsetShares {
  private final int turn;
  private final long[] shares;
  private int nextTurn;

  /**
   * Shares out {@code most} offsets.
   *
   * @param waiting how many wait, by partition
   * @param turn the partition that comes first where not all can have one
   */
  OffsetShares(long[] waiting, long most, int turn) {
    this.turn = turn;
    this.nextTurn = turn;
    BigInteger all = sum(waiting);
    int partitions = (int) Arrays.stream(waiting).filter(offsets -> offsets > 0).count();
    if (all.compareTo(BigInteger.valueOf(most)) <= 0) {
      shares = waiting.clone();
    } else if (most <= partitions) {
      shares = oneEach(waiting, most);
    } else {
      shares = byBacklog(waiting, most - partitions, all.subtract(BigInteger.valueOf(partitions)));
    }
  }

  /** How many offsets each partition gets. */
  long[] shares() {
    return shares;
  }

  /** The partition that comes first the next time. */
  int nextTurn() {
    return nextTurn;
  }

  private long[] oneEach(long[] waiting, long most) {
    long[] first = new long[waiting.length];
    long left = most;
    for (int i = 0; left > 0; i++) {
      int partition = (turn + i) % waiting.length;
      if (waiting[partition] > 0) {
        first[partition] = 1;
        left--;
        nextTurn = (partition + 1) % waiting.length;
      }
    }
    return first;
  }

  /** One each, and {@code more} by what waits beyond that, {@code beyond} in all: rounded down, then one more to the largest remainders. */
  private long[] byBacklog(long[] waiting, long more, BigInteger beyond) {
    long[] given = new long[waiting.length];
    BigInteger[] remainders = new BigInteger[waiting.length];
    long left = more;
    for (int p = 0; p < waiting.length; p++) {
      BigInteger[] share = BigInteger.valueOf(more).multiply(BigInteger.valueOf(Math.max(0, waiting[p] - 1))).divideAndRemainder(beyond);
      left -= share[0].longValueExact();
      given[p] = share[0].longValueExact() + (waiting[p] > 0 ? 1 : 0);
      remainders[p] = share[1];
    }
    IntStream.range(0, waiting.length)
        .mapToObj(i -> (turn + i) % waiting.length)
        .sorted(Comparator.comparing((Integer p) -> remainders[p]).reversed())
        .limit(left)
        .forEach(p -> given[p]++);
    return given;
  }

  /** The sum, for which a long may be too small. */
  static BigInteger sum(long[] numbers) {
    return Arrays.stream(numbers).mapToObj(BigInteger::valueOf).reduce(BigInteger.ZERO, BigInteger::add);
  }
}
