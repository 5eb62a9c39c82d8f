package io.sparklog.serve.net;

import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.TreeSet;

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
  private long claims;
  /** The frames that have a part of their bytes, in the order in which they could end. */
  private final TreeSet<Claim> parts = new TreeSet<>(Comparator.comparingInt(Claim::rest).thenComparingLong(claim -> claim.number));
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
    private final long number;
    private final int length;
    private int held;
    private boolean isReserved;
    private int asked;
    private Runnable given;

    private Claim(long number, int length) {
      this.number = number;
      this.length = length;
    }

    private int rest() {
      return length - held;
    }

    /**
     * Takes more of the bytes of the frame.
     *
     * @param then is called when the bytes are taken, if they are not taken at once: on the thread that gives bytes back
     * @return whether they are taken at once
     */
    boolean take(int more, Runnable then) {
      synchronized (Budget.this) {
        asked = more;
        given = then;
        boolean isTaken = takesReserve(this) || takesStep(this, waiting.stream().anyMatch(each -> each.asked > free));
        if (!isTaken) {
          waiting.add(this);
        }
        return isTaken;
      }
    }

    /** Gives all bytes back, and waits for no more. */
    void give() {
      ArrayDeque<Runnable> next = new ArrayDeque<>();
      synchronized (Budget.this) {
        boolean isWanted = !isReserved || reserve < SHORT_BYTES; // Otherwise no short frame waits, and others may not have the reserve.
        giveBack(this);
        if (isWanted) {
          serve(next);
        }
      }
      next.forEach(Runnable::run);
    }
  }

  /** Begins a frame, which has no memory yet. */
  synchronized Claim claim(int length) {
    return new Claim(claims++, length);
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

  /**
   * Gives the frames that wait their steps, in their order, as far as there is room. One pass finds all: a step of one frame makes no
   * step of another safe, for the memory of a frame that can end is counted as room before the frame has it.
   */
  void serve(ArrayDeque<Runnable> next) {
    boolean isShort = false;
    Claim unsafe = null;
    for (Iterator<Claim> each = waiting.iterator(); each.hasNext();) {
      Claim claim = each.next();
      // A frame that begins, and is as long or longer, is not safe either.
      boolean isLikeUnsafe = unsafe != null && claim.held == 0 && claim.asked == unsafe.asked && claim.length >= unsafe.length;
      if (takesReserve(claim) || !isLikeUnsafe && takesStep(claim, isShort)) {
        each.remove();
        next.add(claim.given);
      } else if (claim.asked > free) {
        isShort = true;
      } else if (claim.held == 0 && !isShort && !isLikeUnsafe) {
        unsafe = claim;
      }
    }
  }

  private boolean takesReserve(Claim claim) {
    if (claim.length > SHORT_BYTES || claim.asked > reserve) {
      return false;
    }
    claim.isReserved = true;
    reserve -= claim.asked;
    claim.held = claim.asked;
    return true;
  }

  /** @param isShort whether a frame before it finds too little */
  private boolean takesStep(Claim claim, boolean isShort) {
    if (claim.asked > free || isShort && !mayPass(claim) || !isSafe(claim)) {
      return false;
    }
    free -= claim.asked;
    if (parts.remove(claim)) {
      inParts -= claim.held;
    }
    claim.held += claim.asked;
    if (claim.held < claim.length) {
      parts.add(claim);
      inParts += claim.held;
    }
    return true;
  }

  /** Whether a frame may take memory while a frame before it finds too little: if it could give its part back then, and begins nothing. */
  boolean mayPass(Claim claim) {
    return claim.held > 0;
  }

  /** Whether all frames with a part could end after this step. A frame that has all its bytes gives them back in any case. */
  boolean isSafe(Claim asking) {
    int held = asking.held + asking.asked;
    int rest = asking.length - held;
    if (rest == 0) { // It gives back all that it has.
      return true;
    }
    long room = bytes - inParts + (parts.contains(asking) ? asking.held : 0) - held;
    boolean ends = false;
    for (Claim part : parts) {
      if (!ends && rest <= part.rest()) {
        if (rest > room) {
          return false;
        }
        room += held;
        ends = true;
      }
      if (part != asking) {
        if (part.rest() > room) {
          return false;
        }
        room += part.held;
      }
    }
    return ends || rest <= room;
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
