package io.sparklog.serve.net;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The memory of the answers of all connections that are made, and that no client has taken. A client that takes its answers has few bytes
 * here. So while memory is short, the connections end that have more. For several threads at once.
 */
final class AnswerMemory {
  private final long most;
  private final AtomicLong bytes = new AtomicLong();

  AnswerMemory(long most) {
    this.most = most;
  }

  /** Counts the buffers of an answer. Records do not count, as the reads of partitions bound these. @return their bytes */
  long add(Reply reply, ByteBufAllocator allocator) {
    long made = reply.parts()
        .stream()
        .filter(part -> part instanceof ByteBuf buffer && buffer.alloc() == allocator)
        .mapToLong(part -> ((ByteBuf) part).capacity())
        .sum();
    bytes.addAndGet(made);
    return made;
  }

  void give(long made) {
    bytes.addAndGet(-made);
  }

  boolean isShort() {
    return bytes.get() > most;
  }

  long bytes() {
    return bytes.get();
  }
}
