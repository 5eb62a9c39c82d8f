package io.sparklog.serve.protocol;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.util.ReferenceCounted;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.MessageSizeAccumulator;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Writable;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.utils.ByteUtils;

/** An answer as Netty's buffers and regions of files: Kafka's message classes write into it, and records stay where they are. */
public final class Wire implements Writable {
  private final ByteBufAllocator allocator;
  private final List<ByteBuf> buffers = new ArrayList<>();
  private final List<ReferenceCounted> parts = new ArrayList<>();
  private final List<ReferenceCounted> after = new ArrayList<>();
  private ByteBuf buffer;

  private Wire(ByteBufAllocator allocator, int bytes) {
    this.allocator = allocator;
    this.buffer = begin(bytes);
  }

  private ByteBuf begin(int bytes) {
    ByteBuf begun = allocator.buffer(bytes);
    buffers.add(begun);
    return begun;
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
    Wire wire = null;
    try {
      header.addSize(size, cache, headerVersion);
      message.addSize(size, cache, request.apiVersion());
      wire = new Wire(allocator, size.sizeExcludingZeroCopy() + Integer.BYTES);
      wire.writeInt(size.totalSize());
      header.write(wire, cache, headerVersion);
      message.write(wire, cache, request.apiVersion());
    } catch (RuntimeException | Error e) {
      if (wire != null) {
        wire.buffers.forEach(ReferenceCounted::release);
      }
      RecordParts.of(message).forEach(RecordParts::release);
      throw e;
    }
    wire.parts.add(wire.buffer);
    wire.parts.addAll(wire.after);
    return wire.parts;
  }

  /** The length of a frame with its first four bytes, which say it. */
  static long length(List<ReferenceCounted> frame) {
    ByteBuf first = (ByteBuf) frame.get(0);
    return Integer.BYTES + (long) first.getInt(first.readerIndex());
  }

  @Override
  public void writeByte(byte value) {
    buffer.writeByte(value);
  }

  @Override
  public void writeShort(short value) {
    buffer.writeShort(value);
  }

  @Override
  public void writeInt(int value) {
    buffer.writeInt(value);
  }

  @Override
  public void writeLong(long value) {
    buffer.writeLong(value);
  }

  @Override
  public void writeDouble(double value) {
    buffer.writeDouble(value);
  }

  @Override
  public void writeByteArray(byte[] bytes) {
    buffer.writeBytes(bytes);
  }

  @Override
  public void writeByteBuffer(ByteBuffer bytes) {
    buffer.writeBytes(bytes.duplicate());
  }

  @Override
  public void writeUnsignedVarint(int value) {
    ByteBuffer bytes = ByteBuffer.allocate(5);
    ByteUtils.writeUnsignedVarint(value, bytes);
    buffer.writeBytes(bytes.flip());
  }

  @Override
  public void writeVarint(int value) {
    ByteBuffer bytes = ByteBuffer.allocate(5);
    ByteUtils.writeVarint(value, bytes);
    buffer.writeBytes(bytes.flip());
  }

  @Override
  public void writeVarlong(long value) {
    ByteBuffer bytes = ByteBuffer.allocate(10);
    ByteUtils.writeVarlong(value, bytes);
    buffer.writeBytes(bytes.flip());
  }

  @Override
  public void writeRecords(BaseRecords records) {
    if (records instanceof MemoryRecords memory) {
      writeByteBuffer(memory.buffer());
      return;
    }
    parts.add(buffer);
    parts.addAll(((RecordParts) records).parts());
    after.addAll(((RecordParts) records).after());
    buffer = begin(256);
  }
}
