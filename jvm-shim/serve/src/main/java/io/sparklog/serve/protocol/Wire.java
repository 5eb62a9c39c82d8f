package io.sparklog.serve.protocol;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.util.ReferenceCounted;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageSizeAccumulator;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.RequestHeader;

/** An answer as slices of a buffer and regions of files: Kafka's message classes write into the buffer, and records stay where they are. */
public final class Wire extends ByteBufferAccessor {
  private final ByteBuf buffer;
  private final List<ReferenceCounted> parts = new ArrayList<>();
  private final List<ReferenceCounted> after = new ArrayList<>();
  private int slices;

  /** Where the next slice begins. */
  private int from;

  private Wire(ByteBuf buffer, int length) {
    super(buffer.nioBuffer(0, length));
    this.buffer = buffer;
  }

  /**
   * The frame of an answer, its length first.
   *
   * @throws RuntimeException if the message cannot be said in the version of the request. Its records are released then
   */
  public static List<ReferenceCounted> frame(ByteBufAllocator allocator, RequestHeader request, ApiMessage message) {
    ObjectSerializationCache cache = new ObjectSerializationCache();
    MessageSizeAccumulator size = new MessageSizeAccumulator();
    ResponseHeaderData header = new ResponseHeaderData().setCorrelationId(request.correlationId());
    short headerVersion = request.apiKey().responseHeaderVersion(request.apiVersion());
    ByteBuf buffer = null;
    try {
      header.addSize(size, cache, headerVersion);
      message.addSize(size, cache, request.apiVersion());
      int length = size.sizeExcludingZeroCopy() + Integer.BYTES;
      buffer = allocator.buffer(length);
      Wire wire = new Wire(buffer, length);
      wire.writeInt(size.totalSize());
      header.write(wire, cache, headerVersion);
      message.write(wire, cache, request.apiVersion());
      return wire.parts();
    } catch (RuntimeException | Error e) {
      if (buffer != null) {
        buffer.release();
      }
      RecordParts.of(message).forEach(RecordParts::release);
      throw e;
    }
  }

  private List<ReferenceCounted> parts() {
    endSlice();
    parts.addAll(after);
    if (slices > 1) {
      buffer.retain(slices - 1); // Each slice is released by itself.
    }
    return parts;
  }

  private void endSlice() {
    parts.add(buffer.slice(from, buffer().position() - from));
    from = buffer().position();
    slices++;
  }

  /** The length of a frame with its first four bytes, which say it. */
  static long length(List<ReferenceCounted> frame) {
    ByteBuf first = (ByteBuf) frame.get(0);
    return Integer.BYTES + (long) first.getInt(first.readerIndex());
  }

  /** The buffer has no room for records. */
  @Override
  public void writeRecords(BaseRecords records) {
    if (records != MemoryRecords.EMPTY) {
      endSlice();
      parts.addAll(((RecordParts) records).parts());
      after.addAll(((RecordParts) records).after());
    }
  }
}
