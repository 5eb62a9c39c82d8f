package io.sparklog.serve.net;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The budget alone, under random interleavings of clients that send frames, stop in the midst of a frame, or end. */
final class BudgetTest {
  private static final int LONGEST = 40 * Budget.SHORT_BYTES;
  private static final int BYTES = LONGEST + LONGEST / 2;
  private static final int ROUNDS = Seed.either(300, 5000);

  /** A budget that breaks one of its rules. */
  private enum Mutant {
    EACH_STEP_IS_SAFE(() -> new Budget(BYTES, LONGEST) {
      @Override
      boolean isSafe(Claim asking) {
        return true;
      }
    }), NO_FRAME_PASSES(() -> new Budget(BYTES, LONGEST) {
      @Override
      boolean mayPass(Claim claim) {
        return false;
      }
    }), ONE_STEP_OF_TWO_IS_SAFE(() -> new Budget(BYTES, LONGEST) {
      private int steps;

      @Override
      boolean isSafe(Claim asking) {
        return steps++ % 2 == 0 || super.isSafe(asking);
      }
    }), NOTHING_IS_SERVED_LATER(() -> new Budget(BYTES, LONGEST) {
      private int served;

      @Override
      void serve(ArrayDeque<Runnable> next) {
        if (served++ % 5 != 4) {
          super.serve(next);
        }
      }
    }), A_FRAME_THAT_ENDS_STILL_WAITS(() -> new Budget(BYTES, LONGEST) {
      @Override
      void giveBack(Claim claim) {
        super.giveBack(claim);
        if (claim.hashCode() % 2 == 0) {
          claim.take(1, () -> {});
        }
      }
    });

    private final Supplier<Budget> made;

    Mutant(Supplier<Budget> made) {
      this.made = made;
    }
  }

  /** A client, as a connection is. @see Frames */
  private final class Client {
    private final int stopsAt;
    private final int length;
    private final Budget.Claim claim;
    private int received;
    private int held;
    private boolean waits;
    private boolean isGone;

    Client(int length, int stopsAt) {
      this.length = length;
      this.stopsAt = stopsAt;
      this.claim = budget.claim(length);
    }

    boolean isStopped() {
      return received >= stopsAt;
    }

    boolean acts() {
      return !isGone && !waits && !isStopped();
    }

    /** Bytes come, or the frame is answered. */
    void act(Random random) {
      if (received == length) {
        end();
      } else if (received < held) {
        received += 1 + random.nextInt(held - received);
      } else {
        // With the steps of Frames, parts are so small that few interleavings break a rule.
        int step = Math.min(length, Math.max(Budget.SHORT_BYTES, 4 * held)) - held;
        if (claim.take(step, () -> given(step))) {
          given(step);
        } else {
          waits = true;
        }
      }
      check();
    }

    private void given(int step) {
      waits = false;
      held += step;
    }

    void end() {
      isGone = true;
      waits = false;
      held = 0;
      claim.give();
    }
  }

  private Budget budget;
  private List<Client> clients;

  private static void require(boolean condition, String what) {
    if (!condition) {
      throw new IllegalStateException(what);
    }
  }

  private void check() {
    long held = clients.stream().mapToLong(client -> client.held).sum();
    require(held <= BYTES, "more is held than there is");
    require(budget.free() == BYTES - held, "the budget has " + budget.free() + " of " + BYTES + ", and " + held + " are held");
  }

  private void run(Random random, BiFunction<Random, Integer, Client> made) {
    clients = new ArrayList<>();
    int count = 2 + random.nextInt(20);
    for (int left = count; left > 0 || clients.stream().anyMatch(Client::acts);) {
      if (left > 0 && random.nextInt(4) == 0) {
        clients.add(made.apply(random, left--));
      }
      List<Client> able = clients.stream().filter(Client::acts).toList();
      if (!able.isEmpty()) {
        able.get(random.nextInt(able.size())).act(random);
      }
      if (random.nextInt(100) == 0 && !clients.isEmpty()) {
        Client client = clients.get(random.nextInt(clients.size()));
        if (!client.isGone) {
          client.end(); // Its connection ends.
        }
      }
    }
  }

  private static int length(Random random) {
    return switch (random.nextInt(4)) {
      case 0 -> random.nextInt(100);
      case 1 -> random.nextInt(Budget.SHORT_BYTES + 1);
      case 2 -> random.nextInt(4 * Budget.SHORT_BYTES);
      default -> LONGEST / 2 + random.nextInt(LONGEST / 2 + 1);
    };
  }

  /** Clients that claim, and send nothing or less, change nothing for the others. */
  private void eachFrameEnds(Random random) {
    run(random, (chance, number) -> {
      int length = length(chance);
      return new Client(length, chance.nextInt(3) == 0 ? 0 : Integer.MAX_VALUE);
    });
    clients.forEach(client -> require(client.isGone || client.isStopped(), "a frame of " + client.length + " bytes waits for ever"));
    assertWhole();
  }

  /** Clients that send a part of a long frame, and stop, keep no short frame of another client from its end. */
  private void shortFramesEnd(Random random) {
    run(random, (chance, number) -> {
      boolean isShort = chance.nextInt(2) == 0;
      int length = isShort ? chance.nextInt(10_000) : Budget.SHORT_BYTES + 1 + chance.nextInt(LONGEST - Budget.SHORT_BYTES);
      return new Client(length, isShort ? Integer.MAX_VALUE : 1 + chance.nextInt(length));
    });
    clients.stream().filter(client -> client.length <= Budget.SHORT_BYTES).forEach(client -> require(client.isGone, "a short frame waits"));
    clients.stream().filter(client -> !client.isGone).toList().forEach(Client::end);
    assertWhole();
  }

  private void assertWhole() {
    clients.stream().filter(client -> !client.isGone).toList().forEach(Client::end);
    check();
    require(budget.free() == BYTES && budget.waiting() == 0 && !budget.isShort(), "the budget is not whole at the end");
  }

  private void rounds(Supplier<Budget> made) {
    Random seeds = new Random(Seed.draw());
    for (int round = 0; round < ROUNDS; round++) {
      Random random = new Random(seeds.nextLong());
      budget = made.get();
      if (round % 2 == 0) {
        eachFrameEnds(random);
      } else {
        shortFramesEnd(random);
      }
    }
  }

  /** The array of before is in memory, and not in the budget, while its bytes are copied. */
  @Test
  void aFrameGrowsToItsLengthAndWhatItHadIsAnEighth() {
    Random random = new Random(Seed.draw());
    for (int round = 0; round < 1000; round++) {
      int length = random.nextInt(round % 10 == 0 ? Integer.MAX_VALUE : 1 << 1 + random.nextInt(30));
      int steps = 0;
      for (int held = 0; held < length; steps++) {
        int next = held + Frames.step(length, held);
        String what = "a frame of " + length + " bytes grows from " + held + " to " + next;
        require(next > held && held <= Math.max(Budget.SHORT_BYTES, next / 8), what);
        require(next <= length && next >= Math.min(length, Budget.SHORT_BYTES), what);
        held = next;
      }
      require(steps <= 6 && (length > Budget.SHORT_BYTES || steps <= 1), steps + " steps");
    }
  }

  @Test
  void framesEndWhateverOthersDo() {
    rounds(() -> new Budget(BYTES, LONGEST));
  }

  @ParameterizedTest
  @EnumSource
  void aBrokenRuleIsFound(Mutant mutant) {
    assertThrows(IllegalStateException.class, () -> rounds(mutant.made));
  }

  /** A frame that waits is not asked again when another frame has grown: its answer would be the same. */
  @Test
  void onePassServesAllThatCanBeServed() {
    rounds(() -> new Budget(BYTES, LONGEST) {
      @Override
      void serve(ArrayDeque<Runnable> next) {
        super.serve(next);
        int given = next.size();
        super.serve(next);
        require(given == next.size(), "the second pass gave what the first did not give");
      }
    });
  }

  /** Clients that send a byte now and then do not take the time of the others. */
  @Test
  void thousandsOfFramesThatWaitAreNotAskedForEachShortFrame() {
    AtomicInteger asked = new AtomicInteger();
    budget = new Budget(BYTES, LONGEST) {
      @Override
      boolean isSafe(Claim asking) {
        asked.incrementAndGet();
        return super.isSafe(asking);
      }
    };
    for (int i = 0; i < 2000; i++) {
      budget.claim(LONGEST / 2).take(Budget.SHORT_BYTES, () -> {});
    }
    assertTrue(budget.waiting() > 1900);
    assertTrue(asked.getAndSet(0) <= 2000, "each is asked for itself alone");
    for (int i = 0; i < 1000; i++) {
      Budget.Claim brief = budget.claim(100);
      assertTrue(brief.take(100, () -> {}));
      brief.give();
    }
    assertEquals(0, asked.get());
    Budget.Claim ended = budget.claim(LONGEST);
    ended.take(Budget.SHORT_BYTES, () -> {});
    ended.give();
    assertTrue(asked.get() <= 2, asked.get() + " frames are asked where a frame like them was not safe");
  }

  @Test
  void aLongFrameIsNotPassedByFramesThatBeginLater() {
    budget = new Budget(BYTES, LONGEST);
    Budget.Claim first = budget.claim(LONGEST);
    assertTrue(first.take(LONGEST, () -> {}));
    List<String> given = new ArrayList<>();
    Budget.Claim second = budget.claim(LONGEST);
    assertEquals(false, second.take(LONGEST, () -> given.add("second")));
    Budget.Claim third = budget.claim(Budget.SHORT_BYTES + 1);
    assertEquals(false, third.take(Budget.SHORT_BYTES, () -> given.add("third")));
    first.give();
    assertEquals("second", given.get(0));
  }

  @Test
  void aShortFramePassesWhereLongFramesHaveAllThatIsTheirs() {
    budget = new Budget(BYTES, LONGEST);
    assertTrue(budget.claim(LONGEST).take(LONGEST, () -> {}));
    int left = (int) budget.free() - BYTES / 8;
    assertTrue(budget.claim(left).take(left, () -> {}));
    assertEquals(false, budget.claim(Budget.SHORT_BYTES + 1).take(Budget.SHORT_BYTES, () -> {}));
    for (int taken = Budget.SHORT_BYTES; taken <= BYTES / 8; taken += Budget.SHORT_BYTES) {
      assertTrue(budget.claim(Budget.SHORT_BYTES).take(Budget.SHORT_BYTES, () -> {}));
    }
    assertEquals(false, budget.claim(Budget.SHORT_BYTES).take(Budget.SHORT_BYTES, () -> {}));
  }
}
