package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Drivers;
import io.sparklog.log.Sequences.Verdict;
import io.sparklog.log.Sequences.Decision;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import java.io.IOException;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The topic knows the last five batches of a producer, and answers a batch that is sent again. FORMAT.md annex B. */
final class SequencesTest extends Drivers {
  private static final long ID = 4711;

  /** Segments of a write, which versions here add again and again. */
  private Segment segment;

  @BeforeEach
  void create() throws IOException {
    new Driver().commit(Map.of("partitions", "2", "producer.id.expiration.ms", "5000"), 0);
    segment = state().segments(0).get(0);
  }

  private int records() {
    return (int) segment.records();
  }

  /** A version with one batch, if it is new. */
  private Decision send(int epoch, long first) {
    Decision[] found = new Decision[1];
    new Committer(new Driver().log(), Names.identity(random), clock(), random).commit(new Change() {
      @Override
      public boolean needsProducers() {
        return true;
      }

      @Override
      public Optional<NextVersion> next(Optional<State> newest) {
        Sequences sequences = new Sequences(newest.orElseThrow());
        found[0] = sequences.next(0, ID, epoch, first, records(), newest.get().end(0));
        if (found[0].answer() != Verdict.NEW) {
          return Optional.empty();
        }
        NextVersion next = new NextVersion(newest.get(), "write").send(sequences);
        next.append(new Segment(0, segment.file(), segment.position(), segment.bytes(), 0, records(), records(), segment.batches(),
            segment.minTimestamp(), segment.maxTimestamp(), segment.offsets(), segment.routed(), segment.ordered(), segment.headerCrc()));
        return Optional.of(next);
      }
    });
    return found[0];
  }

  @Test
  void theLastFiveBatchesAreKnownBySequence() {
    long[] bases = new long[7];
    for (int i = 0; i < 7; i++) {
      Decision decision = send(0, (long) i * records());
      assertEquals(Verdict.NEW, decision.answer());
      bases[i] = decision.base();
    }
    for (int i = 2; i < 7; i++) {
      assertEquals(new Decision(Verdict.REPEATED, bases[i]), send(0, (long) i * records()), "batch " + i);
    }
    for (int i = 0; i < 2; i++) {
      assertEquals(Verdict.OUT_OF_ORDER, send(0, (long) i * records()).answer(), "batch " + i + " is forgotten");
    }
    assertEquals(Verdict.OUT_OF_ORDER, send(0, 8L * records()).answer(), "batch 7 is missing");
  }

  @Test
  void anEpochBeginsAtSequence0AndEndsTheEpochBefore() {
    assertEquals(Verdict.NEW, send(3, 77).answer(), "a producer that is not known may begin anywhere");
    assertEquals(Verdict.OUT_OF_ORDER, send(4, 77 + records()).answer());
    assertEquals(Verdict.NEW, send(4, 0).answer());
    assertEquals(Verdict.OLD_EPOCH, send(3, 77).answer());
    assertEquals(Verdict.OLD_EPOCH, send(3, 77 + records()).answer());
  }

  @Test
  void theSequenceAfterTheLastIs0() {
    assertEquals(Verdict.NEW, send(0, (1L << 31) - records()).answer());
    assertEquals(Verdict.NEW, send(0, 0).answer());
    assertEquals(Verdict.REPEATED, send(0, (1L << 31) - records()).answer());
  }

  @Test
  void batchesOfOneVersionFollowOneAnother() {
    Sequences sequences = new Sequences(Producers.NONE);
    assertEquals(new Decision(Verdict.NEW, 10), sequences.next(0, ID, 0, 0, 3, 10));
    assertEquals(new Decision(Verdict.REPEATED, 10), sequences.next(0, ID, 0, 0, 3, 13));
    assertEquals(new Decision(Verdict.NEW, 13), sequences.next(0, ID, 0, 3, 2, 13));
    assertEquals(Verdict.NEW, sequences.next(1, ID, 0, 5, 2, 13).answer(), "each partition counts by itself");
    assertEquals(Verdict.OUT_OF_ORDER, sequences.next(0, ID, 0, 6, 2, 15).answer());
  }

  @Test
  void aWriteWithoutProducersKeepsThemAndTimeForgetsThem() throws IOException {
    assertFalse(state().head().fields().features().has(Feature.PRODUCERS), "no batch of a producer, no feature");
    Decision first = send(0, 0);
    assertTrue(state().head().fields().features().has(Feature.PRODUCERS));
    new Driver().commit();
    assertEquals(new Decision(Verdict.REPEATED, first.base()), send(0, 0));
    nowMs += 5_000;
    new Driver().commit();
    assertEquals(Verdict.NEW, send(0, 0).answer());
  }
}
