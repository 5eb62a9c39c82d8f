package io.sparklog.source;

import io.sparklog.stream.StreamOffsets;
import org.apache.spark.sql.connector.read.streaming.Offset;

/** {@link StreamOffsets} as Spark keeps them in its log of offsets. Spark compares the JSON. */
final class StreamOffset extends Offset {
  private final StreamOffsets offsets;

  StreamOffset(StreamOffsets offsets) {
    this.offsets = offsets;
  }

  StreamOffsets offsets() {
    return offsets;
  }

  @Override
  public String json() {
    return offsets.json();
  }
}
