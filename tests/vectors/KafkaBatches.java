import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;

/**
 * Kafka's own classes as a filter: one JSON object a line in (what to write), the hex of one batch a line out. Run by generate.py with
 * Kafka's jars.
 */
public final class KafkaBatches {
  public static void main(String[] args) throws Exception {
    ObjectMapper json = new ObjectMapper();
    for (String line : new String(System.in.readAllBytes(), StandardCharsets.UTF_8).split("\n")) {
      JsonNode batch = json.readTree(line);
      long baseOffset = batch.get("baseOffset").longValue();
      MemoryRecordsBuilder builder = new MemoryRecordsBuilder(ByteBuffer.allocate(1 << 16), RecordBatch.MAGIC_VALUE_V2,
          Compression.of(CompressionType.forName(batch.get("codec").textValue())).build(),
          batch.get("logAppendTime").booleanValue() ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME, baseOffset,
          batch.get("maxTimestamp").longValue(), batch.get("producerId").longValue(), batch.get("producerEpoch").shortValue(),
          batch.get("baseSequence").intValue(), batch.get("transactional").booleanValue(), false, batch.get("leaderEpoch").intValue(),
          1 << 16);
      for (JsonNode record : batch.get("records")) {
        List<Header> headers = new ArrayList<>();
        for (JsonNode header : record.get("headers")) {
          headers.add(new RecordHeader(header.get("key").textValue(), bytes(header.get("value"))));
        }
        builder.appendWithOffset(record.get("offset").longValue(),
            // With LogAppendTime the producer's times are kept in the deltas, which no reader may look at.
            record.get("timestamp").longValue() - (batch.get("logAppendTime").booleanValue() ? record.get("offset").longValue() : 0),
            bytes(record.get("key")), bytes(record.get("value")), headers.toArray(new Header[0]));
      }
      builder.overrideLastOffset(baseOffset + batch.get("lastOffsetDelta").longValue());
      ByteBuffer buffer = builder.build().buffer();
      byte[] bytes = new byte[buffer.remaining()];
      buffer.get(bytes);
      System.out.println(HexFormat.of().formatHex(bytes));
    }
  }

  private static byte[] bytes(JsonNode hex) {
    return hex.isNull() ? null : HexFormat.of().parseHex(hex.textValue());
  }
}
