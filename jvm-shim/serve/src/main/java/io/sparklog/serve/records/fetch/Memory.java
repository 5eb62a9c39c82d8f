package io.sparklog.serve.records.fetch;

/** The memory for the batches that answers hold as copies, over all connections. For several threads at once. */
final class Memory {
  private long free;

  Memory(long bytes) {
    this.free = bytes;
  }

  /** Takes as many of {@code bytes} as are free. @return how many, which the caller gives back */
  synchronized long take(long bytes) {
    long taken = Math.max(0, Math.min(bytes, free));
    free -= taken;
    return taken;
  }

  /** Takes bytes that are used already, also if they are not free: a read gives a batch in any case. */
  synchronized void use(long bytes) {
    free -= bytes;
  }

  synchronized void give(long bytes) {
    free += bytes;
  }

  synchronized long free() {
    return free;
  }
}
