import io.sparklog.format.IndexBuilder;
import io.sparklog.format.OffsetIndex;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;

/** The index behind a segment of 512 MiB by itself: prints its batches, its bytes, and the µs of CPU that making it takes. */
final class IndexAlone {
  private static final int SEGMENT_BYTES = 512 << 20;
  private static final int RECORD_BYTES = 1_024;
  private static final int ROUNDS = 201;

  public static void main(String[] arguments) {
    int batchBytes = Integer.parseInt(arguments[0]);
    ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    long[] nanos = new long[ROUNDS];
    int bytes = 0;
    for (int round = 0; round < ROUNDS; round++) {
      long began = threads.getCurrentThreadCpuTime();
      bytes = index(batchBytes).length;
      nanos[round] = threads.getCurrentThreadCpuTime() - began;
    }
    Arrays.sort(nanos);
    System.out.println(SEGMENT_BYTES / batchBytes + " " + bytes + " " + nanos[ROUNDS / 2] / 1_000);
  }

  private static byte[] index(int batchBytes) {
    IndexBuilder index = new IndexBuilder(0, OffsetIndex.INTERVAL_BYTES);
    long last = -1;
    for (long position = 0; position < SEGMENT_BYTES; position += batchBytes) {
      last += batchBytes / RECORD_BYTES;
      index.batch(position, last, 1_700_000_000_000L + last);
    }
    return index.offsetIndex();
  }
}
