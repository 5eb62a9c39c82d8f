package io.sparklog.serve.net;

import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/**
 * The memory for the frames of all connections. A frame takes it in steps as its bytes come: a client that claims a long frame and sends
 * nothing keeps nothing from others.
 *
 * <p>A step is given only if all frames that have a part of theirs could end, one after another, by the memory that is left: the banker's
 * algorithm. Otherwise frames that each have a part could wait for each other for ever. A reserve is for short frames alone, which pass
 * while long ones wait.
 */
class Budget {
  /** A short frame has at most so many bytes, and takes them in one step. */
  static final int SHORT_BYTES = 64 << 10;

  private final long bytes;
  private long free;
  private long reserve;
  /** The frames that have a part of their bytes. */
  private final Set<Claim> parts = new LinkedHashSet<>();
  private long inParts;
  private final Set<Claim> waiting = new LinkedHashSet<>();

  /** @param longest the bytes of the longest frame. It fits beside the reserve, which is an eighth of the budget at most */
  Budget(long bytes, long longest) {
    this.reserve = Math.min(bytes / 8, bytes - longest);
    this.bytes = bytes - reserve;
    this.free = this.bytes;
  }

  /** The memory of one frame. One thread uses it. */
  final class Claim {
    private final int length;
    private int held;
    private boolean isReserved;
    private int asked;
    private Runnable given;

    private Claim(int length) {
      this.length = length;
    }

    /**
     * Takes more of the bytes of the frame.
     *
     * @param then is called when the bytes are taken, if they are not taken at once: on the thread that gives bytes back
     * @return whether they are taken at once
     */
    boolean take(int more, Runnable then) {
      asked = more;
      given = null;
      ArrayDeque<Runnable> next = new ArrayDeque<>();
      synchronized (Budget.this) {
        waiting.add(this);
        serve(next);
        if (waiting.contains(this)) {
          given = then;
        }
      }
      next.forEach(Runnable::run);
      return given == null;
    }

    /** Gives all bytes back, and waits for no more. */
    void give() {
      ArrayDeque<Runnable> next = new ArrayDeque<>();
      synchronized (Budget.this) {
        giveBack(this);
        serve(next);
      }
      next.forEach(Runnable::run);
    }
  }

  /** Begins a frame, which has no memory yet. */
  Claim claim(int length) {
    return new Claim(length);
  }

  void giveBack(Claim claim) {
    waiting.remove(claim);
    if (parts.remove(claim)) {
      inParts -= claim.held;
    }
    if (claim.isReserved) {
      reserve += claim.held;
    } else {
      free += claim.held;
    }
    claim.held = 0;
  }

  /** Gives the frames that wait their steps, in their order, as far as there is room. */
  void serve(ArrayDeque<Runnable> next) {
    boolean isShort = false;
    for (Iterator<Claim> each = waiting.iterator(); each.hasNext();) {
      Claim claim = each.next();
      if (claim.length <= SHORT_BYTES && claim.asked <= reserve) {
        claim.isReserved = true;
        reserve -= claim.asked;
        claim.held = claim.asked;
      } else if (claim.asked > free) {
        isShort = true;
        continue;
      } else if (isShort && !mayPass(claim) || !isSafe(claim)) {
        continue;
      } else {
        takeStep(claim);
      }
      each.remove();
      if (claim.given != null) {
        next.add(claim.given);
      }
    }
  }

  private void takeStep(Claim claim) {
    free -= claim.asked;
    if (parts.remove(claim)) {
      inParts -= claim.held;
    }
    claim.held += claim.asked;
    if (claim.held < claim.length) {
      parts.add(claim);
      inParts += claim.held;
    }
  }

  /** Whether a frame may take memory while a frame before it finds too little: if it could give its part back then, and begins nothing. */
  boolean mayPass(Claim claim) {
    return claim.held > 0;
  }

  /** Whether all frames with a part could end after this step. A frame that has all its bytes gives them back in any case. */
  boolean isSafe(Claim asking) {
    int rest = asking.length - asking.held - asking.asked;
    if (rest == 0) { // It gives back all that it has.
      return true;
    }
    int held = asking.held + asking.asked;
    long left = bytes - inParts + (parts.contains(asking) ? asking.held : 0) - held;
    if (left >= rest && parts.stream().allMatch(each -> left >= each.length - each.held)) {
      return true;
    }
    record Unread(int held, int rest) {}
    List<Unread> ends = Stream
        .concat(parts.stream().filter(each -> each != asking).map(each -> new Unread(each.held, each.length - each.held)),
            Stream.of(new Unread(held, rest)))
        .sorted(Comparator.comparingInt(Unread::rest))
        .toList();
    long room = left;
    for (Unread part : ends) {
      if (part.rest > room) {
        return false;
      }
      room += part.held;
    }
    return true;
  }

  /** Whether a frame waits. */
  synchronized boolean isShort() {
    return !waiting.isEmpty();
  }

  /** How many frames wait. */
  synchronized int waiting() {
    return waiting.size();
  }

  /** The bytes that are left, with the reserve. */
  synchronized long free() {
    return free + reserve;
  }
}
