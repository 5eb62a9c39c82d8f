package io.sparklog.source;

import io.sparklog.read.StreamOffsets;
import org.apache.spark.sql.connector.read.streaming.Offset;

/** {@link StreamOffsets} as Spark keeps them in its log of offsets. Spark compares the JSON. */
final class StreamOffset extends Offset {
  private final StreamOffsets offsets;
  private final String json;

  StreamOffset(StreamOffsets offsets) {
    this.offsets = offsets;
    this.json = offsets.json();
  }

  StreamOffsets offsets() {
    return offsets;
  }

  @Override
  public String json() {
    return json;
  }
}
