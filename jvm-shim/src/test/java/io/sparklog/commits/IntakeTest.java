package io.sparklog.commits;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.format.Codec;
import io.sparklog.format.Layout;
import io.sparklog.kit.Drivers;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A batch is let in if every reader can read it, and is refused with the reason otherwise. FORMAT.md section C.1. */
final class IntakeTest extends Drivers {
  private Intake intake(Map<String, String> settings) throws IOException {
    new Driver().commit(settings, 0);
    return new Intake(state(), clock());
  }

  private static AppendRefused.Reason refusal(Intake intake, ByteBuffer batch) {
    return assertThrows(AppendRefused.class, () -> intake.accept(0, batch)).refusal();
  }

  /** The batch after a change, with a right CRC. */
  private static ByteBuffer changed(ClientBatch of, Consumer<ByteBuffer> change) {
    ByteBuffer batch = of.bytes();
    change.accept(batch);
    BatchHeader.setMaxTimestamp(batch.array(), batch.getLong(Layout.MAX_TIMESTAMP_AT));
    return batch;
  }

  @ParameterizedTest
  @EnumSource(Codec.class)
  void aBatchIsStoredAsItCame(Codec codec) throws Exception {
    Intake intake = intake(Map.of());
    ByteBuffer sent = ClientBatch.of(20, "value ".repeat(20)).in(codec).by(7, 1, 40).bytes();
    ByteBuffer marked = sent.duplicate().putInt(Layout.LEADER_EPOCH_AT, 5);
    PreparedAppend.PreparedBatch accepted = intake.accept(0, marked);
    assertEquals(ByteBuffer.wrap(accepted.bytes()), sent.putInt(Layout.LEADER_EPOCH_AT, 0));
    assertEquals(ClientBatch.NOON, accepted.minTimestamp());
    assertTrue(accepted.ordered());
    assertEquals(PreparedAppend.KeyHomes.NONE, accepted.keys());
  }

  @Test
  void keysAreHashed() throws Exception {
    Intake intake = intake(Map.of());
    ByteBuffer batch = ClientBatch.of(2, "v").keyed("a key").bytes();
    int home = state().partition("a key".getBytes()).orElseThrow();
    assertEquals(PreparedAppend.KeyHomes.ALL, intake.accept(home, batch).keys());
    assertEquals(PreparedAppend.KeyHomes.ASTRAY, intake.accept((home + 1) % 4, batch).keys());
  }

  @Test
  void aBatchThatItsClientMustNotSendIsRefused() throws Exception {
    Intake intake = intake(Map.of());
    ClientBatch good = ClientBatch.of(3, "v");
    intake.accept(0, good.bytes());
    assertEquals(AppendRefused.Reason.UNSUPPORTED_MAGIC, refusal(intake, changed(good, b -> b.put(Layout.MAGIC_AT, (byte) 1))));
    assertEquals(AppendRefused.Reason.UNSUPPORTED_CODEC, refusal(intake, changed(good, b -> b.put(Layout.ATTRIBUTES_AT + 1, (byte) 5))));
    for (int mask : new int[] {Layout.TRANSACTIONAL_MASK, 0x20, 0x40, 0x80, 0x100}) {
      assertEquals(AppendRefused.Reason.INVALID_RECORD, refusal(intake, changed(good, b -> b.putShort(Layout.ATTRIBUTES_AT, (short) mask))),
          "" + mask);
    }
    assertEquals(AppendRefused.Reason.INVALID_TIMESTAMP,
        refusal(intake, changed(good, b -> b.putShort(Layout.ATTRIBUTES_AT, (short) Layout.LOG_APPEND_TIME_MASK))));
    assertEquals(AppendRefused.Reason.INVALID_RECORD, refusal(intake, changed(good, b -> b.putInt(Layout.LAST_OFFSET_DELTA_AT, 3))),
        "a gap");
    assertEquals(AppendRefused.Reason.INVALID_RECORD, refusal(intake, good.by(7, -1, 0).bytes()));
    assertEquals(AppendRefused.Reason.INVALID_RECORD, refusal(intake, good.by(7, 0, -1).bytes()));
    assertEquals(AppendRefused.Reason.INVALID_RECORD, refusal(intake, good.by(-2, 0, 0).bytes()));
    assertEquals(AppendRefused.Reason.INVALID_RECORD, refusal(intake, changed(good, b -> b.put(Layout.HEADER_BYTES, (byte) 99))),
        "a length");
    assertEquals(AppendRefused.Reason.INVALID_TIMESTAMP, refusal(intake, good.at(-5).bytes()));
    assertEquals(AppendRefused.Reason.UNKNOWN_PARTITION, assertThrows(AppendRefused.class, () -> intake.accept(4, good.bytes())).refusal());
  }

  @Test
  void damageIsTold() throws Exception {
    Intake intake = intake(Map.of());
    ByteBuffer good = ClientBatch.of(3, "v").bytes();
    for (int at = 0; at < good.limit(); at++) {
      ByteBuffer damaged = ByteBuffer.wrap(good.array().clone());
      damaged.put(at, (byte) (damaged.get(at) ^ 0x40));
      if (at < Layout.LENGTH_AT || at >= Layout.LEADER_EPOCH_AT && at < Layout.MAGIC_AT) {
        intake.accept(0, damaged); // The base offset and the leader epoch are not the client's.
      } else {
        assertThrows(AppendRefused.class, () -> intake.accept(0, damaged), "byte " + at);
      }
    }
    for (int bytes = 0; bytes < good.limit(); bytes++) {
      ByteBuffer cut = good.duplicate().limit(bytes);
      assertThrows(AppendRefused.class, () -> intake.accept(0, cut));
    }
    ByteBuffer twice = ByteBuffer.allocate(2 * good.limit()).put(good.duplicate()).put(good.duplicate()).flip();
    assertEquals(AppendRefused.Reason.CORRUPT, refusal(intake, twice), "one batch in a request");
  }

  @Test
  void aBatchIsNotLargerThanReadersMayHold() throws Exception {
    Intake intake = intake(Map.of("max.message.bytes", "100000", "segment.bytes", "50000"));
    assertEquals(AppendRefused.Reason.TOO_LARGE, refusal(intake, ClientBatch.of(1, "x".repeat(100_000)).bytes()));
    assertEquals(AppendRefused.Reason.TOO_LARGE_FOR_SEGMENT, refusal(intake, ClientBatch.of(1, "x".repeat(50_000)).bytes()));
    ByteBuffer bomb = ClientBatch.of(1, "x".repeat(65 << 20)).in(Codec.ZSTD).bytes();
    assertTrue(bomb.limit() < 50_000, "a few bytes become more than readers may hold");
    assertEquals(AppendRefused.Reason.INVALID_RECORD, refusal(intake, bomb));
  }

  @Test
  void theLogSetsTheTimesThatAreItsOwn() throws Exception {
    Intake intake = intake(Map.of("message.timestamp.type", "LogAppendTime"));
    PreparedAppend.PreparedBatch accepted = intake.accept(0, ClientBatch.of(3, "v").bytes());
    BatchDecoder decoder = new BatchDecoder(1 << 20);
    decoder.decode(accepted.bytes(), 0, accepted.bytes().length);
    assertTrue(decoder.isLogAppendTime());
    for (int i = 0; i < 3; i++) {
      assertEquals(nowMs, decoder.timestamps()[i]);
    }
    assertEquals(nowMs, accepted.minTimestamp());
    assertEquals(nowMs, BatchHeader.baseTimestamp(accepted.bytes(), 0));
  }

  /** As in a topic of Kafka 4. A time in ns would keep all later records of its partition from retention. */
  @Test
  void aTimeIsAnHourAheadAtMostWhereATopicSaysNothingElse() throws Exception {
    ClientBatch one = ClientBatch.of(1, "v");
    Intake intake = intake(Map.of());
    intake.accept(0, one.at(0).bytes());
    intake.accept(0, one.at(nowMs + 3_600_000).bytes());
    for (long time : new long[] {nowMs + 3_600_001, nowMs * 1_000_000, Long.MAX_VALUE}) {
      assertEquals(AppendRefused.Reason.INVALID_TIMESTAMP, refusal(intake, one.at(time).bytes()), time + " ms");
    }
  }

  @Test
  void theGreatestTimeIsMadeRightAndTimesAreLimited() throws Exception {
    Intake intake = intake(Map.of("message.timestamp.before.max.ms", "1000", "message.timestamp.after.max.ms", "2000"));
    ClientBatch now = ClientBatch.of(3, "v").at(nowMs);
    ByteBuffer wrong = now.bytes();
    BatchHeader.setMaxTimestamp(wrong.array(), 12);
    assertEquals(nowMs + 2, BatchHeader.maxTimestamp(intake.accept(0, wrong).bytes(), 0));
    assertEquals(AppendRefused.Reason.INVALID_TIMESTAMP, refusal(intake, now.at(nowMs - 1001).bytes()));
    assertEquals(AppendRefused.Reason.INVALID_TIMESTAMP, refusal(intake, now.at(nowMs + 2000).bytes()));
    intake.accept(0, now.at(nowMs - 1000).bytes());
    intake.accept(0, now.at(nowMs + 1998).bytes());
    assertEquals(-1, intake.accept(0, ClientBatch.of(1, "v").at(-1).bytes()).minTimestamp(), "a record without a time");
  }
}
