package io.sparklog.spark;

/** A source of a streaming query that learns where the query writes. */
public interface ToldOfWrites {
  /** The query has written to a topic. */
  void written(String root, String topic);
}
