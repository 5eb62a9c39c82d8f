import io.sparklog.storage.FileReader;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.PlannedReads;
import io.sparklog.storage.StoreRef;
import io.sparklog.storage.Stores;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.TreeMap;
import java.util.zip.CRC32C;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileRange;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The reads of a scan beside the input streams of S3A: one thread reads a data file of a root in S3 front to back, and gives its bytes to
 * CRC-32C. For each line of standard input, which names a side, the file is read once, and the checksum is printed with the seconds.
 */
final class StoreAlone {
  private static final int READ_BYTES = 256 << 10;
  private static final int RANGE_BYTES = 8 << 20;

  /** A scan holds four windows of 8 MiB. So a vectored read asks for as many bytes at once. */
  private static final int RANGES = 4;

  private final Map<String, String> settings = new TreeMap<>();
  private final Map<String, FileSystem> opened = new TreeMap<>();
  private final String root;
  private final String name;
  private final long bytes;
  private final LogStore store;

  private StoreAlone(String[] arguments) {
    root = arguments[0];
    name = arguments[1];
    bytes = Long.parseLong(arguments[2]);
    for (int at = 3; at < arguments.length; at++) {
      String[] setting = arguments[at].split("=", 2);
      settings.put(setting[0], setting[1]);
    }
    store = Stores.open(new StoreRef(root, new TreeMap<>(settings)));
  }

  /** @param arguments the root, the name of the file in it, its bytes, and settings of Hadoop such as {@code fs.s3a.endpoint=…} */
  public static void main(String[] arguments) throws Exception {
    StoreAlone alone = new StoreAlone(arguments);
    for (Scanner lines = new Scanner(System.in); lines.hasNextLine();) {
      String side = lines.nextLine();
      CRC32C crc = new CRC32C();
      long began = System.nanoTime();
      alone.read(side, crc);
      System.out.println(crc.getValue() + " " + (System.nanoTime() - began) / 1e9);
    }
  }

  private void read(String side, CRC32C crc) throws Exception {
    if (side.equals("planned")) {
      planned(crc);
      return;
    }
    String[] typeAndPolicy = side.split(",");
    FileSystem files = opened.computeIfAbsent(typeAndPolicy[0], this::open);
    try (FSDataInputStream in = files.openFile(new Path(root, name))
        .opt("fs.option.openfile.read.policy", typeAndPolicy[1])
        .optLong("fs.option.openfile.length", bytes)
        .build()
        .get()) {
      if (typeAndPolicy[1].equals("vectored")) {
        vectored(in, crc);
      } else {
        byte[] buffer = new byte[READ_BYTES];
        for (int got; (got = in.read(buffer)) > 0;) {
          crc.update(buffer, 0, got);
        }
      }
    }
  }

  private FileSystem open(String type) {
    Configuration configuration = new Configuration();
    settings.forEach(configuration::set);
    configuration.set("fs.s3a.input.stream.type", type);
    try {
      return FileSystem.newInstance(new Path(root).toUri(), configuration);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  private void planned(CRC32C crc) throws IOException {
    List<PlannedReads.Range> plan = List.of(new PlannedReads.Range(name, 0, bytes));
    byte[] buffer = new byte[READ_BYTES];
    try (PlannedReads reads = new PlannedReads(store::open, store.requests(), plan, store.streamedBytesMin());
        FileReader file = reads.open(name, bytes)) {
      for (long at = 0; at < bytes; at += buffer.length) {
        int length = (int) Math.min(buffer.length, bytes - at);
        file.read(at, buffer, 0, length);
        crc.update(buffer, 0, length);
      }
    }
  }

  /** Four ranges at once; when their bytes have been used, the next four. */
  private void vectored(FSDataInputStream in, CRC32C crc) throws Exception {
    for (long at = 0; at < bytes;) {
      List<FileRange> ranges = new ArrayList<>();
      for (; at < bytes && ranges.size() < RANGES; at += RANGE_BYTES) {
        ranges.add(FileRange.createFileRange(at, (int) Math.min(RANGE_BYTES, bytes - at)));
      }
      in.readVectored(ranges, ByteBuffer::allocate);
      for (FileRange range : ranges) {
        crc.update(range.getData().get());
      }
    }
  }
}
