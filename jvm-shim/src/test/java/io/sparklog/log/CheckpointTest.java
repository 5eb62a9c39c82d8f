package io.sparklog.log;

import static io.sparklog.storage.FaultyStore.When.BEFORE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.json.Damaged;
import io.sparklog.segment.Names;
import io.sparklog.storage.FaultyStore;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.PutObserver;
import io.sparklog.storage.Stores;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Checkpoints at their limits; what damage does to them is tested with both readers. */
final class CheckpointTest {
  private static final String TXN = Names.identity(new Random(7));
  private static final TopicHead HEAD = new TopicHead(Features.NONE, "t", Names.identity(new Random(1)), 100, 0, 0, 0, false);

  @TempDir
  Path directory;
  private LogStore store;

  @BeforeEach
  void open() {
    store = Stores.open(directory.toString());
  }

  private State state(int queries, int idLength, char padding) throws Damaged {
    Map<String, String> config = Map.of("partitions", "1", "partitioner", "murmur3", "compression.type", "none", "segment.bytes", "1048576",
        "max.message.bytes", "1000", "message.timestamp.type", "CreateTime", "index.interval.bytes", "4096");
    State.Head head = new State.Head(HEAD, Version.sha256(versionFile()), null, Producers.NONE, new TopicConfig(config), null, new long[1],
        new long[1], Further.NONE);
    Map<String, Query.Applied> newest = new TreeMap<>();
    for (int i = 0; i < queries; i++) {
      String id = i + String.valueOf(padding).repeat(idLength - Integer.toString(i).length());
      newest.put(id, new Query.Applied(new Query(id, i, i % 2 == 0 ? null : HexFormat.of().toHexDigits((long) i)), i));
    }
    return new Replay(head, newest, List.of(List.of())).build();
  }

  /** The file of the version that the checkpoint is of. */
  private static byte[] versionFile() {
    return new Version(HEAD, TXN, "0".repeat(64), "write", null, null, null, List.of(), Map.of(), Map.of(), Map.of(), List.of(), List.of(),
        Further.NONE).toBytes();
  }

  private List<String> written() throws IOException {
    return store.list(Names.topicFolder("t")).stream().filter(name -> Names.checkpointVersion(name).isPresent()).toList();
  }

  @Test
  @Tag("slow")
  void oneThatNoReaderWouldTakeIsNotWritten() throws IOException, Damaged {
    Checkpoint.write(store, state(2100, 32_000, 'x'), TXN);
    Checkpoint.write(store, state(70, 32_000, '['), TXN);
    assertEquals(List.of(), written());
    State largest = state(2090, 32_000, 'x');
    Checkpoint.write(store, largest, TXN);
    String name = written().get(0);
    long bytes = Files.size(directory.resolve(Names.topicFile("t", name)));
    assertTrue(bytes > 66_000_000 && bytes <= (64 << 20) + 1, bytes + " bytes");
    assertEquals(largest.queries(), Checkpoint.read(store, "t", name).build().queries());
  }

  /** Nothing of a sparse file need be there; what is read of it ends with the limit of its first line. */
  @Test
  void anEndlessOneIsNotReadToItsEnd() throws IOException, Damaged {
    String name = Names.checkpoint(100, "0123456789abcdef");
    Path file = directory.resolve(Names.topicFile("t", name));
    Files.createDirectories(file.getParent());
    try (RandomAccessFile sparse = new RandomAccessFile(file.toFile(), "rw")) {
      sparse.setLength(1L << 40);
    }
    Damaged e = assertThrows(Damaged.class, () -> Checkpoint.read(store, "t", name));
    assertEquals("a line has more than 67108864 bytes", e.getMessage());
  }

  /** Nothing of a sparse file need be there; a reader stops behind the segments, and a writer finds the producers damaged. */
  @Test
  void aReaderReadsNoProducers() throws IOException, Damaged {
    String name = Names.checkpoint(100, "0123456789abcdef");
    Path file = directory.resolve(Names.topicFile("t", name));
    Checkpoint.write(store, state(1, 10, 'x'), TXN);
    byte[] bytes = Files.readAllBytes(directory.resolve(Names.topicFile("t", written().get(0))));
    String head = new String(bytes, StandardCharsets.UTF_8).split("\t")[0].replace("\"features\":[]",
        "\"features\":[{\"name\":\"producers\",\"binds\":\"writers\"}],\"producers\":1000000");
    CRC32C crc = new CRC32C();
    crc.update(head.getBytes(StandardCharsets.UTF_8));
    Files.writeString(file, head + "\t" + HexFormat.of().toHexDigits((int) crc.getValue()) + "\n");
    try (RandomAccessFile sparse = new RandomAccessFile(file.toFile(), "rw")) {
      sparse.setLength(1L << 40);
    }
    State read = Checkpoint.read(store, "t", name, null, false).build();
    assertEquals(100, read.version());
    assertFalse(read.knowsProducers());
    Damaged e = assertThrows(Damaged.class, () -> Checkpoint.read(store, "t", name));
    assertEquals("a line has more than 65536 bytes", e.getMessage());
  }

  /** A damaged checkpoint is skipped; a bug is not damage, and must not become a slow read that is not noticed. */
  @Test
  void aBugIsNotTakenForDamage() throws IOException, Damaged {
    Checkpoint.write(store, state(1, 10, 'x'), TXN);
    store.putIfAbsent(Names.topicFile("t", Names.versionFile(100)), Names.topicFile("t", "tmp/x"), versionFile(), PutObserver.NONE);
    LogStore buggy = FaultyStore.of(store).failAll("open", BEFORE, new IllegalArgumentException("a bug")).store();
    IllegalArgumentException e = assertThrows(IllegalArgumentException.class, () -> new TopicLog(buggy, "t").newest());
    assertEquals("a bug", e.getMessage());
    assertEquals(100, new TopicLog(store, "t").newest().orElseThrow().version());
  }
}
