package io.sparklog.stream;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import java.math.BigInteger;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class OffsetSharesTest {
  private final long seed = Seed.draw();
  private final Random random = new Random(seed);

  private long[] backlog() {
    long[] waiting = new long[1 + random.nextInt(20)];
    for (int p = 0; p < waiting.length; p++) {
      // Small numbers, large ones, and numbers whose sums and products exceed a long.
      waiting[p] = switch (random.nextInt(4)) {
        case 0 -> 0;
        case 1 -> random.nextInt(4);
        case 2 -> random.nextInt(1_000_000);
        default -> Long.MAX_VALUE - random.nextInt(1000);
      };
    }
    return waiting;
  }

  private long most() {
    return switch (random.nextInt(3)) {
      case 0 -> 1 + random.nextInt(30);
      case 1 -> 1 + random.nextInt(3_000_000);
      default -> Long.MAX_VALUE - random.nextInt(1000);
    };
  }

  private static BigInteger sum(long[] numbers) {
    return Arrays.stream(numbers).mapToObj(BigInteger::valueOf).reduce(BigInteger.ZERO, BigInteger::add);
  }

  @Test
  void exactlyAsManyAsThereMayBeAndSomethingOfAll() {
    System.out.println("seed " + seed);
    for (int i = 0; i < Seed.either(5_000, 20_000); i++) {
      long[] waiting = backlog();
      long most = most();
      int turn = random.nextInt(waiting.length);
      OffsetShares shares = new OffsetShares(waiting, most, turn);
      String about = Arrays.toString(waiting) + ", most " + most + ", turn " + turn + ": " + Arrays.toString(shares.shares());
      assertEquals(sum(waiting).min(BigInteger.valueOf(most)), sum(shares.shares()), about);
      long partitions = Arrays.stream(waiting).filter(offsets -> offsets > 0).count();
      for (int p = 0; p < waiting.length; p++) {
        assertTrue(shares.shares()[p] >= 0 && shares.shares()[p] <= waiting[p], about);
        assertTrue(most < partitions || waiting[p] == 0 || shares.shares()[p] > 0, about);
      }
      assertTrue(shares.nextTurn() >= 0 && shares.nextTurn() < waiting.length, about);
    }
  }

  @Test
  void largeBacklogsGetLargeShares() {
    assertArrayEquals(new long[] {91, 0, 7, 2}, new OffsetShares(new long[] {9001, 0, 601, 101}, 100, 0).shares());
    // (97 × 9000, 97 × 600, 97 × 100) / 9700 = 90, 6 and 1, one more for each.
  }

  @Test
  void equalRemaindersTakeTurns() {
    assertArrayEquals(new long[] {2, 2, 1, 1}, new OffsetShares(new long[] {9, 9, 9, 9}, 6, 0).shares());
    assertArrayEquals(new long[] {2, 1, 1, 2}, new OffsetShares(new long[] {9, 9, 9, 9}, 6, 3).shares());
  }

  /** With fewer offsets than partitions that wait, each of these waits for at most as many rounds as are needed for one offset each. */
  @Test
  void nobodyWaitsForEver() {
    System.out.println("seed " + seed);
    for (int i = 0; i < Seed.either(500, 2000); i++) {
      int partitions = 1 + random.nextInt(20);
      boolean[] always = new boolean[partitions];
      boolean[] ever = new boolean[partitions];
      for (int p = 0; p < partitions; p++) {
        always[p] = p == 0 || random.nextBoolean();
        // These have a backlog now and then, and not when it would be their turn.
        ever[p] = always[p] || random.nextBoolean();
      }
      long rivals = 0;
      for (boolean one : ever) {
        rivals += one ? 1 : 0;
      }
      int most = 1 + random.nextInt((int) rivals);
      long rounds = (rivals + most - 1) / most;
      int turn = random.nextInt(partitions);
      long[] waited = new long[partitions];
      for (int round = 0; round < 60; round++) {
        long[] waiting = new long[partitions];
        for (int p = 0; p < partitions; p++) {
          waiting[p] = always[p] || ever[p] && random.nextBoolean() ? 1_000_000 : 0;
        }
        OffsetShares shares = new OffsetShares(waiting, most, turn);
        turn = shares.nextTurn();
        for (int p = 0; p < partitions; p++) {
          waited[p] = shares.shares()[p] > 0 ? 0 : waited[p] + 1;
          assertTrue(!always[p] || waited[p] < rounds, most + " of " + rivals + ", partition " + p + " waited " + waited[p]);
        }
      }
    }
  }
}
