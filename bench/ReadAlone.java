import com.github.luben.zstd.ZstdDecompressCtx;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Scanner;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.xerial.snappy.Snappy;

/**
 * The least that a checked read can cost: for each line of standard input, all bytes of the .log files in a folder are read and given to
 * CRC-32C, a thread a core, and the number of bytes is
 * printed. With "decompress", the batches are also given to their codec's library, and the number of bytes that come out is printed.
 */
final class ReadAlone {
  private static final int READ_BYTES = 256 << 10;
  private static final int HEADER_BYTES = 61;
  private static final int LENGTH_AT = 8;
  private static final int BEFORE_LENGTH_BYTES = 12;
  private static final int ATTRIBUTES_AT = 22;
  private static final int SUMMED_AT = 21;
  private static final int XERIAL_HEADER_BYTES = 16;

  public static void main(String[] arguments) throws Exception {
    List<Path> files;
    try (Stream<Path> walk = Files.walk(Path.of(arguments[0]))) {
      files = walk.filter(path -> path.toString().endsWith(".log")).sorted().toList();
    }
    Reader reader = arguments[1].equals("decompress") ? ReadAlone::decompress : ReadAlone::checksum;
    for (Scanner lines = new Scanner(System.in); lines.hasNextLine(); lines.nextLine()) {
      System.out.println(pass(files, reader));
    }
  }

  private interface Reader {
    long read(FileChannel file) throws IOException;
  }

  private static long pass(List<Path> files, Reader reader) throws InterruptedException {
    AtomicInteger next = new AtomicInteger();
    long[] bytes = new long[Runtime.getRuntime().availableProcessors()];
    Thread[] threads = new Thread[bytes.length];
    for (int t = 0; t < threads.length; t++) {
      int thread = t;
      threads[t] = new Thread(() -> {
        for (int file; (file = next.getAndIncrement()) < files.size();) {
          try (FileChannel channel = FileChannel.open(files.get(file))) {
            bytes[thread] += reader.read(channel);
          } catch (IOException e) {
            throw new UncheckedIOException(e);
          }
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

  private static long checksum(FileChannel file) throws IOException {
    CRC32C crc = new CRC32C();
    ByteBuffer buffer = ByteBuffer.allocateDirect(READ_BYTES);
    long bytes = 0;
    while (file.read(buffer.clear()) > 0) {
      bytes += buffer.flip().remaining();
      crc.update(buffer);
    }
    return bytes;
  }

  /** Batch by batch, each read whole into one array and decompressed into another, which both stay. */
  private static long decompress(FileChannel file) throws IOException {
    CRC32C crc = new CRC32C();
    ByteBuffer batch = ByteBuffer.allocate(READ_BYTES);
    byte[] plain = new byte[1 << 20];
    long bytes = 0;
    try (ZstdDecompressCtx zstd = new ZstdDecompressCtx()) {
      for (long at = 0; at < file.size(); at += batch.limit()) {
        file.read(batch.clear().limit(HEADER_BYTES), at);
        int length = batch.getInt(LENGTH_AT) + BEFORE_LENGTH_BYTES;
        if (length > batch.capacity()) {
          batch = ByteBuffer.allocate(length);
        }
        file.read(batch.clear().limit(length), at);
        crc.update(batch.array(), SUMMED_AT, length - SUMMED_AT);
        int payload = length - HEADER_BYTES;
        bytes += switch (batch.get(ATTRIBUTES_AT) & 7) {
          case 2 -> snappy(batch, length, plain);
          case 4 -> zstd.decompressByteArray(plain, 0, plain.length, batch.array(), HEADER_BYTES, payload);
          default -> throw new IllegalArgumentException("only snappy and zstd are compared");
        };
      }
    }
    return bytes;
  }

  private static int snappy(ByteBuffer batch, int length, byte[] plain) throws IOException {
    int out = 0;
    for (int at = HEADER_BYTES + XERIAL_HEADER_BYTES; at < length;) {
      int block = batch.getInt(at);
      out += Snappy.uncompress(batch.array(), at + Integer.BYTES, block, plain, out);
      at += Integer.BYTES + block;
    }
    return out;
  }
}
