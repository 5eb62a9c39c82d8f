package io.sparklog.serve.protocol;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.FileRegion;
import io.netty.util.AbstractReferenceCounted;
import io.netty.util.ReferenceCounted;
import java.io.IOException;
import java.nio.channels.WritableByteChannel;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageSizeAccumulator;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordsSend;
import org.apache.kafka.common.requests.RequestHeader;

/** An answer as slices of a buffer and regions of files: Kafka's message classes write into the buffer, and records stay where they are. */
public final class Wire extends ByteBufferAccessor {
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

  /** A region without bytes at a place in an answer. Its task runs when all before it is sent, or the answer is given up. */
  public static class AfterSend extends AbstractReferenceCounted implements FileRegion {
    private final Runnable task;

    public AfterSend(Runnable task) {
      this.task = task;
    }

    @Override
    public long transferTo(WritableByteChannel target, long at) throws IOException {
      return 0;
    }

    @Override
    public long position() {
      return 0;
    }

    @Override
    public long count() {
      return 0;
    }

    @Override
    public long transferred() {
      return 0;
    }

    @Override
    @SuppressWarnings("deprecation") // The interface still has it.
    public final long transfered() {
      return transferred();
    }

    @Override
    protected final void deallocate() {
      task.run();
    }

    @Override
    public final FileRegion touch(Object hint) {
      return this;
    }

    @Override
    public final FileRegion touch() {
      return this;
    }

    @Override
    public final FileRegion retain() {
      super.retain();
      return this;
    }

    @Override
    public final FileRegion retain(int increment) {
      super.retain(increment);
      return this;
    }
  }

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

  /** The buffer has the message without its records. */
  @Override
  public void writeRecords(BaseRecords records) {
    if (records != MemoryRecords.EMPTY) {
      endSlice();
      parts.addAll(((RecordParts) records).parts());
      after.addAll(((RecordParts) records).after());
    }
  }
}
