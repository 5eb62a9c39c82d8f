package io.sparklog.serve.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.message.FetchResponseData.FetchableTopicResponse;
import org.apache.kafka.common.message.FetchResponseData.PartitionData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.RecordsSend;
import org.apache.kafka.common.requests.RequestHeader;
import org.junit.jupiter.api.Test;

/** An answer that cannot be written leaves nothing open. */
final class WireTest {
  /** Records that no answer can have. */
  private record Foreign(int sizeInBytes) implements BaseRecords {
    @Override
    public RecordsSend<? extends BaseRecords> toSend() {
      throw new UnsupportedOperationException();
    }
  }

  @Test
  void anAnswerThatFailsInTheMiddleGivesAllItsRecordsBack() {
    List<ByteBuf> buffers = new ArrayList<>();
    int[] ended = new int[1];
    FetchableTopicResponse topic = new FetchableTopicResponse().setTopic("t");
    for (int partition = 0; partition < 3; partition++) {
      ByteBuf buffer = Unpooled.wrappedBuffer(new byte[10]);
      buffers.add(buffer);
      Wire.RecordParts parts = new Wire.RecordParts(List.of(buffer), List.of(new Wire.AfterSend(() -> ended[0]++)), 10);
      topic.partitions().add(new PartitionData().setPartitionIndex(partition).setRecords(partition == 1 ? new Foreign(10) : parts));
    }
    FetchResponseData message = new FetchResponseData().setResponses(List.of(topic));
    RequestHeader header = new RequestHeader(ApiKeys.FETCH, (short) 12, "client", 0);
    assertThrows(ClassCastException.class, () -> Wire.frame(UnpooledByteBufAllocator.DEFAULT, header, message));
    assertEquals(List.of(0, 1, 0), buffers.stream().map(ByteBuf::refCnt).toList(), "the second one is not in the answer");
    assertEquals(2, ended[0]);
  }
}
