package io.sparklog.serve.records.fetch;

import io.sparklog.segment.ReadAhead;
import java.util.ArrayDeque;

/**
 * The memory of cursors, beside the copies in answers: half for buffers of large batches, half for bytes that are asked for ahead. For
 * several threads at once.
 *
 * <p>A cursor that waits for a buffer holds no other buffer, and each cursor gives its buffer back after a read: so each wait
 * ends. A buffer that is larger than the half is there alone.
 */
final class ReadMemory {
  /** One cursor has this part of the memory for bytes ahead at most: so that many cursors have some. */
  private static final int AHEAD_PART = 8;

  private final long most;
  private final Runnable closeIdle;
  private long buffers;
  private long ahead;
  private final ArrayDeque<Reservation> waiting = new ArrayDeque<>();

  /** @param closeIdle closes the cursors that wait for the next fetch, as others need their memory */
  ReadMemory(long bytes, Runnable closeIdle) {
    this.most = bytes / 2;
    this.closeIdle = closeIdle;
    this.buffers = most;
    this.ahead = most;
  }

  /** The memory of one cursor. */
  final class Reservation implements ReadAhead.ReadRoom {
    private long ofBuffer;
    private long ofAhead;

    @Override
    public void buffer(int bytes) {
      long more = Math.min(bytes, most);
      synchronized (ReadMemory.this) {
        giveBuffer();
        if (waiting.isEmpty() && more <= buffers) {
          takeBuffer(more);
          return;
        }
        waiting.add(this);
      }
      try {
        closeIdle.run(); // Not within the lock, by which these give their memory back.
      } catch (RuntimeException | Error e) {
        synchronized (ReadMemory.this) {
          waiting.remove(this);
          ReadMemory.this.notifyAll();
        }
        throw e;
      }
      await(more);
    }

    private void await(long more) {
      boolean isInterrupted = false;
      synchronized (ReadMemory.this) {
        while (waiting.element() != this || more > buffers) {
          try {
            ReadMemory.this.wait();
          } catch (InterruptedException e) {
            isInterrupted = true;
          }
        }
        waiting.remove();
        takeBuffer(more);
        ReadMemory.this.notifyAll();
      }
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
    }

    private void takeBuffer(long bytes) {
      buffers -= bytes;
      ofBuffer = bytes;
    }

    private void giveBuffer() {
      buffers += ofBuffer;
      ofBuffer = 0;
      ReadMemory.this.notifyAll();
    }

    /** As much as there is: it never waits, and so a cursor asks for fewer bytes ahead while there is little. */
    @Override
    public long ahead() {
      synchronized (ReadMemory.this) {
        long more = Math.min(most / AHEAD_PART - ofAhead, ahead);
        ahead -= more;
        ofAhead += more;
        return ofAhead;
      }
    }

    @Override
    public void give() {
      synchronized (ReadMemory.this) {
        giveBuffer();
        ahead += ofAhead;
        ofAhead = 0;
      }
    }
  }

  Reservation share() {
    return new Reservation();
  }

  /** Whether a cursor waits for a buffer. */
  synchronized boolean isScarce() {
    return !waiting.isEmpty();
  }

  /** How many bytes no cursor has. */
  synchronized long free() {
    return buffers + ahead;
  }
}
