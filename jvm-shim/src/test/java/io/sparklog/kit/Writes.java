package io.sparklog.kit;

import io.sparklog.storage.LogStore;
import io.sparklog.write.TaskWriter;
import io.sparklog.write.TopicBuffer;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * The writes of the tests of the protocol: records with values {@code <tag>:<task>:<number>}, so that each tells which commit it is of.
 *
 * @param records of each task
 * @param big bytes that the values of task 0 are padded with
 * @param fall every so often a time falls; 0: never
 * @param keys how many different ones there are; 0: the records have no keys
 */
public record Writes(String tag, int tasks, int records, int big, int batchBytes, int bufferBytes, int fall, int keys) {
  /** The configuration of a topic, all of it. */
  public static TreeMap<String, String> config() {
    return new TreeMap<>(Map.of("partitions", "4", "partitioner", "murmur3", "compression.type", "none", "segment.bytes", "1073741824",
        "max.message.bytes", "1048588", "message.timestamp.type", "CreateTime", "index.interval.bytes", "4096"));
  }

  public static Writes of(String tag, int tasks, int records, int big) {
    return new Writes(tag, tasks, records, big, 1 << 14, 64 << 20, 0, 7);
  }

  /** Writes as the tasks would, and gives what they report. */
  public List<TopicReport> reports(LogStore store, TopicPlan plan, String txn) throws IOException {
    List<TopicReport> reports = new ArrayList<>();
    for (int task = 0; task < tasks; task++) {
      reports.add(task(store, plan, txn, task));
    }
    return reports;
  }

  private TopicReport task(LogStore store, TopicPlan plan, String txn, int task) throws IOException {
    try (TaskWriter writer = new TaskWriter(store, txn, task, tasks, task + 100L, batchBytes, bufferBytes)) {
      TopicBuffer topic = writer.topic(plan);
      for (int i = 0; i < records; i++) {
        byte[] key = keys == 0 ? new byte[0] : ("k" + i % keys).getBytes(StandardCharsets.UTF_8);
        byte[] value = String.format(Locale.ROOT, "%s:%d:%06d%s", tag, task, i, "v".repeat(task == 0 ? big : 0))
            .getBytes(StandardCharsets.UTF_8);
        byte[] row = Arrays.copyOf(key, key.length + value.length);
        System.arraycopy(value, 0, row, key.length, value.length);
        long back = fall > 0 && i % fall == 0 ? 500 : 0;
        topic.append(1_700_000_000_000L + i - back, row, 0, keys == 0 ? -1 : key.length, key.length, value.length, null,
            TopicBuffer.NO_HEADERS_BYTES);
      }
      return writer.finish().get(plan.topic());
    }
  }
}
