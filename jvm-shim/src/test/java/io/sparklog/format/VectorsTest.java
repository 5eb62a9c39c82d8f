package io.sparklog.format;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

class VectorsTest {
  /** Bits of attributes that no batch of this release has. */
  private static final List<String> RESERVED = List.of("transactional", "control", "deleteHorizon");

  private static boolean isReserved(JsonNode v) {
    return RESERVED.stream().anyMatch(field -> v.get(field).booleanValue());
  }

  @TestFactory
  Stream<DynamicTest> batchesOfOthersDecodeToWhatTheyWrote() {
    return Vectors.batches().filter(v -> !isReserved(v)).map(v -> DynamicTest.dynamicTest(v.get("name").textValue(), () -> decodes(v)));
  }

  @TestFactory
  Stream<DynamicTest> batchesWithReservedAttributesAreRefused() {
    return Vectors.batches().filter(VectorsTest::isReserved).map(v -> DynamicTest.dynamicTest(v.get("name").textValue(), () -> {
      byte[] batch = HexFormat.of().parseHex(v.get("hex").textValue());
      assertRefused(batch);
    }));
  }

  @Test
  void eachReservedAttributeIsRefused() throws BadBatch {
    byte[] right = HexFormat.of().parseHex(Vectors.batches().findFirst().orElseThrow().get("hex").textValue());
    new BatchDecoder(1 << 20).decode(right, 0, right.length);
    for (int bit = 4; bit < 16; bit++) {
      byte[] batch = right.clone();
      ByteBuffer.wrap(batch).putShort(Layout.ATTRIBUTES_AT, (short) (1 << bit));
      BatchHeader.seal(batch, new CRC32C());
      assertRefused(batch);
    }
  }

  private static void assertRefused(byte[] batch) {
    BadBatch refused = assertThrows(BadBatch.class, () -> BatchHeader.check(batch, 0, batch.length));
    assertTrue(refused.getMessage().contains("bits 4 to 15 must be 0"), refused.getMessage());
    assertThrows(BadBatch.class, () -> new BatchDecoder(1 << 20).decode(batch, 0, batch.length));
  }

  private static void decodes(JsonNode v) throws BadBatch {
    byte[] batch = HexFormat.of().parseHex(v.get("hex").textValue());
    long baseOffset = v.get("baseOffset").longValue();
    assertEquals(batch.length, BatchHeader.check(batch, 0, batch.length));
    assertEquals(batch.length, BatchHeader.totalBytes(batch, 0));
    assertEquals(baseOffset, BatchHeader.baseOffset(batch, 0));
    assertEquals(v.get("leaderEpoch").intValue(), BatchHeader.leaderEpoch(batch, 0));
    assertEquals(v.get("crc").longValue(), BatchHeader.crc(batch, 0));
    assertEquals(v.get("codec").textValue(), Codec.of(BatchHeader.codecId(batch, 0)).optionName());
    assertEquals(v.get("logAppendTime").booleanValue(), BatchHeader.isLogAppendTime(batch, 0));
    assertEquals(v.get("lastOffsetDelta").intValue(), BatchHeader.lastOffsetDelta(batch, 0));
    assertEquals(v.get("baseTimestamp").longValue(), BatchHeader.baseTimestamp(batch, 0));
    assertEquals(v.get("maxTimestamp").longValue(), BatchHeader.maxTimestamp(batch, 0));
    assertEquals(v.get("producerId").longValue(), BatchHeader.producerId(batch, 0));
    assertEquals(v.get("producerEpoch").intValue(), BatchHeader.producerEpoch(batch, 0));
    assertEquals(v.get("baseSequence").intValue(), BatchHeader.baseSequence(batch, 0));
    assertEquals(v.get("records").size(), BatchHeader.count(batch, 0));

    // Not at the start of the buffer, and not up to its end.
    byte[] amidst = new byte[batch.length + 100];
    Arrays.fill(amidst, (byte) 0x80);
    System.arraycopy(batch, 0, amidst, 37, batch.length);
    BatchDecoder decoder = new BatchDecoder(1 << 20);
    decoder.decode(amidst, 37, batch.length);
    List<PlainRecord> expected = PlainRecord.of(v.get("records"), baseOffset);
    assertEquals(expected, PlainRecord.of(decoder));
    assertEquals(v.get("logAppendTime").booleanValue(), decoder.isLogAppendTime());
  }

  @TestFactory
  Stream<DynamicTest> ourUncompressedBatchesAreThoseOfKafka() {
    // Compressed ones may differ: each library has its own choices.
    return Vectors.batches()
        .filter(v -> List.of("A-two-records", "kafka-none", "kafka-python-none").contains(v.get("name").textValue()))
        .map(v -> DynamicTest.dynamicTest(v.get("name").textValue(), () -> {
          long baseOffset = v.get("baseOffset").longValue();
          List<PlainRecord> records = PlainRecord.of(v.get("records"), baseOffset);
          byte[] batch = PlainRecord.encode(new BatchEncoder(Codec.NONE, false), baseOffset, records);
          assertEquals(v.get("hex").textValue(), HexFormat.of().formatHex(batch));
        }));
  }

  @Test
  void eachFileAndEachCodecOfEachWriterIsThere() {
    for (String writer : List.of("E", "kafka", "kafka-python", "aiokafka")) {
      for (Codec codec : Codec.values()) {
        if (writer.equals("E") && codec == Codec.NONE) {
          continue;
        }
        String name = writer + "-" + codec.optionName();
        JsonNode vector = Vectors.batches().filter(v -> v.get("name").textValue().equals(name)).findFirst().orElseThrow();
        assertEquals(codec.optionName(), vector.get("codec").textValue(), name);
      }
    }
  }

  @Test
  void varints() throws BadBatch {
    JsonNode vectors = Vectors.load("varints.json");
    for (JsonNode v : vectors.get("varint")) {
      int value = v.get("value").intValue();
      byte[] expected = HexFormat.of().parseHex(v.get("hex").textValue());
      byte[] written = new byte[Varint.sizeOf(value)];
      assertEquals(expected.length, Varint.write(written, 0, value));
      assertArrayEquals(expected, written, () -> v.toString());
      assertEquals(expected.length, Varint.endOf(expected, 0, expected.length, Varint.INT_BYTES_MAX));
      assertEquals(value, Varint.intOf(expected, 0, expected.length));
    }
    for (JsonNode v : vectors.get("varlong")) {
      long value = v.get("value").longValue();
      byte[] expected = HexFormat.of().parseHex(v.get("hex").textValue());
      byte[] written = new byte[Varint.sizeOf(value)];
      assertEquals(expected.length, Varint.write(written, 0, value));
      assertArrayEquals(expected, written, () -> v.toString());
      assertEquals(expected.length, Varint.endOf(expected, 0, expected.length, Varint.LONG_BYTES_MAX));
      assertEquals(value, Varint.longOf(expected, 0, expected.length));
    }
    assertTrue(vectors.get("varint").size() > 20 && vectors.get("varlong").size() > 40);
  }
}
