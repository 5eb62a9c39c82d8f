package io.sparklog.stream;

import io.sparklog.read.Split;
import java.util.ArrayList;
import java.util.List;

/** Which splits of a micro-batch one task reads: a task costs more than a small split takes to read. */
public final class TaskShares {
  /** A split below this many bytes shares a task. */
  static final long SMALL_BYTES = 1 << 20;

  private TaskShares() {}

  /**
   * The splits by task, in their order. Small ones go together, neighbours with neighbours, so the splits of a partition stay in order.
   *
   * @param tasks the most tasks for small splits
   * @param recordsMax the most records of a task; a split that has more is a task
   */
  public static List<List<Split>> of(List<Split> splits, int tasks, long recordsMax) {
    List<Split> small = splits.stream().filter(split -> split.bytesToRead() < SMALL_BYTES).toList();
    List<List<Split>> shares = new ArrayList<>();
    splits.stream().filter(split -> split.bytesToRead() >= SMALL_BYTES).forEach(split -> shares.add(List.of(split)));
    if (small.size() <= tasks) {
      small.forEach(split -> shares.add(List.of(split)));
      return shares;
    }
    long bytesLeft = small.stream().mapToLong(Split::bytesToRead).sum();
    int tasksLeft = tasks;
    long room = bytesLeft / tasksLeft;
    List<Split> share = new ArrayList<>();
    long bytes = 0;
    long records = 0;
    for (Split split : small) {
      boolean full = tasksLeft > 1 && bytes + split.bytesToRead() / 2 > room;
      if (!share.isEmpty() && (full || split.offsets() > recordsMax - records)) {
        shares.add(share);
        share = new ArrayList<>();
        bytesLeft -= bytes;
        tasksLeft = Math.max(1, tasksLeft - 1);
        room = bytesLeft / tasksLeft;
        bytes = 0;
        records = 0;
      }
      share.add(split);
      bytes += split.bytesToRead();
      records += split.offsets();
    }
    shares.add(share);
    return shares;
  }
}
