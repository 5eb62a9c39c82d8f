package io.sparklog.sink;

import io.sparklog.log.Committed;
import io.sparklog.segment.Segment;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.ToLongFunction;
import java.util.stream.Collectors;

/** The sink's part of a query's progress about the trigger: {@code sink.metrics}. */
public final class SinkMetrics {
  private List<Committed> trigger = List.of();

  synchronized void note(List<Committed> committed) {
    trigger = committed;
  }

  /**
   * The commits since the last call, so that a trigger without data reports 0 records. {@code version} is a JSON object with the version
   * put in each topic, bytes are bytes of record batches, times are in ms. {@code mergedBytes} are the bytes of the segments that merging
   * made, and {@code liveSegments} counts the segments of the written topics.
   */
  public synchronized Map<String, String> take() {
    List<Committed> done = trigger;
    trigger = List.of();
    Map<String, String> metrics = new TreeMap<>();
    metrics.put("version",
        done.stream()
            .filter(topic -> topic.version().isPresent())
            .map(topic -> "\"" + topic.topic() + "\":" + topic.version().get().version())
            .collect(Collectors.joining(",", "{", "}")));
    metrics.put("records", sum(done, topic -> added(topic, Segment::records)));
    metrics.put("bytes", sum(done, topic -> added(topic, Segment::bytes)));
    metrics.put("commitMs", sum(done, Committed::commitMs));
    metrics.put("tidyMs", sum(done, Committed::tidyMs));
    metrics.put("mergedBytes", sum(done, Committed::mergedBytes));
    metrics.put("liveSegments", sum(done, Committed::liveSegments));
    return metrics;
  }

  private static long added(Committed topic, ToLongFunction<Segment> what) {
    return topic.version().map(version -> version.added().stream().mapToLong(what).sum()).orElse(0L);
  }

  private static String sum(List<Committed> topics, ToLongFunction<Committed> what) {
    return Long.toString(topics.stream().mapToLong(what).sum());
  }
}
