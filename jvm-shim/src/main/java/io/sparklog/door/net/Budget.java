package io.sparklog.door.net;

import java.util.ArrayDeque;

/** The memory for the frames of all connections. A frame has its whole length before its first byte is read. Frames wait in their order. */
final class Budget {
  private record Waiting(int bytes, Runnable given) {}

  private final ArrayDeque<Waiting> waiting = new ArrayDeque<>();
  private long free;

  Budget(long bytes) {
    this.free = bytes;
  }

  /**
   * Takes bytes of the budget.
   *
   * @param given is called when the bytes are taken, if they are not taken at once: on the thread that gives bytes back
   * @return whether they are taken at once
   */
  synchronized boolean take(int bytes, Runnable given) {
    if (waiting.isEmpty() && bytes <= free) {
      free -= bytes;
      return true;
    }
    waiting.add(new Waiting(bytes, given));
    return false;
  }

  void give(int bytes) {
    ArrayDeque<Runnable> next = new ArrayDeque<>();
    synchronized (this) {
      free += bytes;
      while (!waiting.isEmpty() && waiting.peek().bytes <= free) {
        Waiting first = waiting.remove();
        free -= first.bytes;
        next.add(first.given);
      }
    }
    next.forEach(Runnable::run);
  }

  /** Whether a frame waits. */
  synchronized boolean isShort() {
    return !waiting.isEmpty();
  }

  /** How many frames wait. */
  synchronized int waiting() {
    return waiting.size();
  }

  synchronized long free() {
    return free;
  }
}
