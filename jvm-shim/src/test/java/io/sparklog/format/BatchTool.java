package io.sparklog.format;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;

/**
 * The encoder and the decoder as a filter, for tests in Python. For each line that comes in, one goes out:
 *
 * <ul>
 *   <li>{@code encode}: {@code {"codec", "logAppendTime", "baseOffset", "records"}} in, the hex of a batch out;
 *   <li>{@code decode}: the hex of a batch in, {@code {"records"}} or {@code {"bad": reason}} out.
 * </ul>
 *
 * Records are as in {@code tests/vectors}.
 */
public final class BatchTool {
  private static final ObjectMapper JSON = new ObjectMapper();

  private BatchTool() {}

  public static void main(String[] args) throws IOException {
    boolean encode = args[0].equals("encode");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.println(encode ? encoded(JSON.readTree(line)) : decoded(HexFormat.of().parseHex(line)));
    }
    out.flush();
  }

  private static String encoded(JsonNode order) {
    long baseOffset = order.get("baseOffset").longValue();
    List<PlainRecord> records = PlainRecord.of(order.get("records"), baseOffset);
    BatchEncoder encoder = new BatchEncoder(Codec.named(order.get("codec").textValue()), order.get("logAppendTime").booleanValue());
    return HexFormat.of().formatHex(PlainRecord.encode(encoder, baseOffset, records));
  }

  private static ObjectNode decoded(byte[] batch) {
    ObjectNode answer = JSON.createObjectNode();
    try {
      List<PlainRecord> records = PlainRecord.decode(batch);
      ArrayNode array = answer.putArray("records");
      for (PlainRecord record : records) {
        array.add(record.toJson(JSON, BatchHeader.baseOffset(batch, 0)));
      }
    } catch (BadBatch e) {
      answer.put("bad", e.getMessage());
    }
    return answer;
  }
}
