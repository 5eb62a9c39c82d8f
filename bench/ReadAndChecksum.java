import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Scanner;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import java.util.zip.CRC32C;

/**
 * The least that a checked read can cost: for each line of standard input, all bytes of the .log files in a folder are read and given to CRC-32C, a thread a core, and the number of bytes is
 * printed.
 */
final class ReadAndChecksum {
  private static final int READ_BYTES = 256 << 10;

  public static void main(String[] arguments) throws Exception {
    List<Path> files;
    try (Stream<Path> walk = Files.walk(Path.of(arguments[0]))) {
      files = walk.filter(path -> path.toString().endsWith(".log")).sorted().toList();
    }
    for (Scanner lines = new Scanner(System.in); lines.hasNextLine(); lines.nextLine()) {
      System.out.println(pass(files));
    }
  }

  private static long pass(List<Path> files) throws InterruptedException {
    AtomicInteger next = new AtomicInteger();
    long[] bytes = new long[Runtime.getRuntime().availableProcessors()];
    Thread[] threads = new Thread[bytes.length];
    for (int t = 0; t < threads.length; t++) {
      int thread = t;
      threads[t] =
          new Thread(
              () -> {
                ByteBuffer buffer = ByteBuffer.allocateDirect(READ_BYTES);
                for (int file; (file = next.getAndIncrement()) < files.size(); ) {
                  bytes[thread] += read(files.get(file), buffer);
                }
              });
      threads[t].start();
    }
    long total = 0;
    for (int t = 0; t < threads.length; t++) {
      threads[t].join();
      total += bytes[t];
    }
    return total;
  }

  private static long read(Path file, ByteBuffer buffer) {
    CRC32C crc = new CRC32C();
    long bytes = 0;
    try (FileChannel channel = FileChannel.open(file)) {
      while (channel.read(buffer.clear()) > 0) {
        bytes += buffer.flip().remaining();
        crc.update(buffer);
      }
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
    return bytes;
  }
}
