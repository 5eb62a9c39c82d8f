package io.sparklog.serve.protocol;

import io.netty.util.ReferenceCounted;
import java.util.List;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.RecordsSend;

/**
 * Records of an answer as buffers and regions of files, which are never copied together. An answer owns them.
 *
 * @param after regions without bytes, which are put behind all bytes of the answer
 * @param sizeInBytes of all parts
 */
public record RecordParts(List<ReferenceCounted> parts, List<AfterSend> after, int sizeInBytes) implements BaseRecords {
  /** The records of a message, in the order in which it writes them. Fetch alone has such records. */
  static List<RecordParts> of(ApiMessage message) {
    if (!(message instanceof FetchResponseData data)) {
      return List.of();
    }
    return data.responses()
        .stream()
        .flatMap(topic -> topic.partitions().stream())
        .filter(partition -> partition.records() instanceof RecordParts)
        .map(partition -> (RecordParts) partition.records())
        .toList();
  }

  /** Gives the parts back, in place of writing them. */
  void release() {
    parts.forEach(ReferenceCounted::release);
    after.forEach(ReferenceCounted::release);
  }

  @Override
  public RecordsSend<? extends BaseRecords> toSend() {
    throw new UnsupportedOperationException("answers are written by Wire");
  }
}
