package io.sparklog.door.api;

import io.netty.util.ReferenceCounted;
import java.util.List;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.RecordsSend;

/**
 * Records of an answer as buffers and regions of files, which are never copied together. An answer owns them.
 *
 * @param sizeInBytes of all parts
 */
record RecordParts(List<ReferenceCounted> parts, int sizeInBytes) implements BaseRecords {
  @Override
  public RecordsSend<? extends BaseRecords> toSend() {
    throw new UnsupportedOperationException("answers are written by Wire");
  }
}
