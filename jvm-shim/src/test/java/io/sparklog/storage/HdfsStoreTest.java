package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.spec.PartlogException;
import java.io.EOFException;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options.Rename;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DFSClientFaultInjector;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.DSQuotaExceededException;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.function.Executable;

/** A real HDFS, which {@code make test-stores} starts. */
@EnabledIfSystemProperty(named = "stores.hdfs", matches = ".+")
final class HdfsStoreTest extends LogStoreContract {
  private static final Duration HOUR = Duration.ofHours(1);

  private final StoreRef ref = StoreSettings.newRoot("stores.hdfs", Map.of());

  @Override
  LogStore newStore() {
    return HdfsStore.open(ref);
  }

  /** {@code tests/stores/test_races.py} has more, between processes. */
  @Override
  int races() {
    return 5;
  }

  @Override
  boolean writesToTheTemporaryName() {
    return false;
  }

  /** The stream goes on from read to read, and each read finds its bytes whatever was read before it. */
  @Test
  void aLargeRangeIsReadByOneStream() throws IOException {
    HdfsStore store = HdfsStore.open(ref);
    store.createFolder("");
    byte[] content = new byte[3 * (int) store.requests().streamedBytesMin() / 2];
    new Random(7).nextBytes(content);
    try (FileAppender file = store.create("large")) {
      file.write(content, 0, content.length);
      file.sync();
    }
    AtomicInteger requests = new AtomicInteger();
    DFSClientFaultInjector.set(new DFSClientFaultInjector() {
      /** A read at a position asks a DataNode by itself. */
      @Override
      public void startFetchFromDatanode() {
        requests.incrementAndGet();
      }
    });
    int to = content.length - 1000;
    try (FileReader file = store.open("large", content.length)) {
      assertRead(content, file, 50, 100_000);
      assertEquals(1, requests.get(), "nothing is expected yet, so a read is a request");
      file.expect(1000, to);
      for (int at = 1000; at + 100_000 <= to; at += 100_000) {
        assertRead(content, file, at, 100_000);
      }
      assertEquals(1, requests.get(), "the reads of the range are no requests of their own");
      assertRead(content, file, 5000, 100_000);
      assertRead(content, file, 9_000_000, 100_000);
      assertEquals(1, requests.get());
      assertRead(content, file, to - 500, 1500);
      assertEquals(2, requests.get(), "its end is not in the range");
      assertRead(content, file, 2000, 100);
      assertThrows(EOFException.class, () -> file.read(to, new byte[1001], 0, 1001));
    } finally {
      DFSClientFaultInjector.set(new DFSClientFaultInjector());
    }
    store.delete("large");
    try (FileReader gone = store.open("large", content.length)) {
      gone.expect(0, content.length); // It is the first read that finds out.
      assertThrows(NoSuchFileException.class, () -> gone.read(0, new byte[10], 0, 10));
    }
  }

  private static void assertRead(byte[] content, FileReader file, int position, int length) throws IOException {
    byte[] read = new byte[length];
    file.read(position, read, 0, length);
    assertArrayEquals(Arrays.copyOfRange(content, position, position + length), read, "at " + position);
  }

  /** How else a put could be tried, and why it is not done so. */
  private interface Put {
    void put(DistributedFileSystem files, Path unnamed, Path name, byte[] content) throws IOException;
  }

  private HdfsStore broken(Put put) throws IOException {
    Configuration configuration = HadoopSettings.configuration(ref.settings());
    Path root = new Path(StoreSettings.newRoot("stores.hdfs", Map.of()).root());
    DistributedFileSystem hdfs = (DistributedFileSystem) FileSystem.newInstance(root.toUri(), configuration);
    return new HdfsStore(new SharedFiles(() -> hdfs, HOUR, Requests.IN_TURN),
        new StoreRef(root.toString(), new TreeMap<>(ref.settings()))) {
      @Override
      public void putIfAbsent(String name, String temporary, byte[] content, PutObserver observer) throws IOException {
        try {
          put.put(hdfs, path(temporary), path(name), content);
        } catch (IOException e) {
          throw HadoopErrors.translated(location(name), e);
        }
      }
    };
  }

  private static void write(FSDataOutputStream out, byte[] content) throws IOException {
    try (out) {
      out.write(content);
      out.hsync();
    }
  }

  @Test
  void aPutByARenameThatOverwritesIsFound() throws IOException {
    ContractOf store = new ContractOf(broken((files, unnamed, name, content) -> {
      write(files.create(unnamed, true), content);
      files.rename(unnamed, name, Rename.OVERWRITE);
    }));
    assertThrows(AssertionError.class, store::aPutNeverReplaces);
  }

  @Test
  void aPutByCreateIsFound() throws IOException {
    ContractOf store = new ContractOf(broken((files, unnamed, name, content) -> {
      FSDataOutputStream out = files.create(name, false);
      files.exists(name); // As long as another request takes, the file is empty.
      write(out, content);
    }));
    // Readers see it empty, or other writers are told of its lease and not that it exists.
    assertThrows(Throwable.class, store::ofEightPutsOneWins);
  }

  /** HDFS takes the option, and ignores it. */
  @Test
  void aPutByMustAloneIsFound() throws IOException {
    ContractOf store = new ContractOf(broken((files, unnamed, name, content) -> {
      FSDataOutputStreamBuilder<?, ?> builder = files.createFile(name).overwrite(true);
      write((FSDataOutputStream) builder.must("fs.option.create.conditional.overwrite", true).build(), content);
    }));
    assertThrows(AssertionError.class, store::aPutNeverReplaces);
  }

  /** A rename whose answer is lost, and one that was never made: what is there afterwards decides. */
  @Test
  void aRenameWithoutAnAnswerIsDecidedByItsSource() throws IOException {
    HdfsStore done = renaming(real -> {
      assertDoesNotThrow(real);
      throw new IOException("the answer is lost");
    });
    assertThrows(NoAnswerException.class, () -> done.putIfAbsent(FILE, TEMPORARY, bytes("one"), PutObserver.NONE));
    assertEquals("one", new String(done.read(FILE, 10)));
    HdfsStore never = renaming(real -> {
      throw new IOException("the connection is refused");
    });
    IOException over = assertThrows(IOException.class, () -> never.putIfAbsent(FILE, TEMPORARY, bytes("one"), PutObserver.NONE));
    assertFalse(over instanceof NoAnswerException, over.toString());
    assertFalse(never.exists(FILE));
    assertEquals(List.of(), never.list(TOPIC + "/tmp"));
  }

  private interface Renaming {
    void rename(Executable real) throws IOException;
  }

  private HdfsStore renaming(Renaming renaming) throws IOException {
    Configuration configuration = HadoopSettings.configuration(ref.settings());
    Path root = new Path(StoreSettings.newRoot("stores.hdfs", Map.of()).root());
    DistributedFileSystem files = (DistributedFileSystem) FileSystem.newInstance(root.toUri(), configuration);
    return new HdfsStore(new SharedFiles(() -> files, HOUR, Requests.IN_TURN), new StoreRef(root.toString(), ref.settings())) {
      @Override
      void rename(FileSystem files, Path unnamed, Path name) throws IOException {
        renaming.rename(() -> super.rename(files, unnamed, name));
      }
    };
  }

  @Test
  void aFileThatIsDeletedWhileItIsReadIsGone() throws IOException, InterruptedException {
    createFile(FILE, "0123456789");
    try (FileReader file = store.open(FILE)) {
      store.delete(FILE);
      byte[] to = new byte[1];
      for (int i = 0; i < 300; i++) {
        try {
          file.read(i % 10, to, 0, 1);
        } catch (NoSuchFileException gone) {
          return;
        }
        Thread.sleep(100);
      }
    }
    throw new AssertionError("the DataNodes still have its bytes after 30 s");
  }

  @Test
  void lengthsAreThoseOfOneListing() throws IOException {
    createFile(TOPIC + "/data/f/a.log", "12345");
    createFile(TOPIC + "/data/f/b.log", "");
    assertEquals(Map.of("a.log", 5L, "b.log", 0L), store.lengths(TOPIC + "/data/f", Set.of("a.log", "b.log", "c.log")));
    assertEquals(Map.of(), store.lengths(TOPIC + "/data/none", Set.of("a.log")));
  }

  @Test
  void aJvmHasOneStoreOfARootAndItsFileSystemIsItsOwn() throws IOException {
    LogStore opened = Stores.open(ref);
    assertSame(opened, Stores.open(new StoreRef(ref.root() + "/", ref.settings())));
    TreeMap<String, String> other = new TreeMap<>(ref.settings());
    other.put("fs.unknown", "1");
    assertNotSame(opened, Stores.open(new StoreRef(ref.root(), other)));
    FileSystem shared = new Path(ref.root()).getFileSystem(HadoopSettings.configuration(ref.settings()));
    try (SharedFiles.Use use = assertInstanceOf(HdfsStore.class, opened).use()) {
      assertNotSame(shared, use.files());
    }
  }

  @Test
  void aMountTableLeadsToHdfs() throws IOException {
    store.createFolder(TOPIC);
    put(FILE, "one");
    TreeMap<String, String> settings = new TreeMap<>(ref.settings());
    String above = ref.root().substring(0, ref.root().lastIndexOf('/'));
    settings.put("fs.viewfs.mounttable.cluster.link./logs", above);
    settings.put("fs.viewfs.mounttable.cluster.link./tmp", "file:///tmp");
    String name = ref.root().substring(above.length());
    LogStore mounted = Stores.open(new StoreRef("viewfs://cluster/logs" + name, settings));
    assertEquals(store.root(), mounted.root());
    assertEquals("one", new String(mounted.read(FILE, 10)));
    assertEquals(above + "/new/root", Stores.open(new StoreRef("viewfs://cluster/logs/new/root", settings)).root());
    for (String elsewhere : List.of("viewfs://cluster/tmp/x", "viewfs://cluster/none")) {
      PartlogException refused = assertThrows(PartlogException.class, () -> Stores.open(new StoreRef(elsewhere, settings)));
      assertEquals("STORE_UNSUPPORTED", refused.id(), refused.getMessage());
    }
  }

  @Test
  void aPutThatIsRefusedLeavesNothing() throws IOException {
    store.createFolder(TOPIC);
    put(FILE, "one");
    assertThrows(FileAlreadyExistsException.class, () -> put(FILE, "two"));
    assertTrue(store.list(TOPIC + "/tmp").isEmpty());
  }

  /** The sync fails, and not the write: HDFS gives space by blocks. */
  @Test
  void aQuotaIsToldInTheWordsOfHdfs() throws IOException {
    store.createFolder(TOPIC + "/tmp");
    try (SharedFiles.Use use = assertInstanceOf(HdfsStore.class, store).use()) {
      DistributedFileSystem hdfs = (DistributedFileSystem) use.files();
      hdfs.setQuota(new Path(ref.root()), HdfsConstants.QUOTA_DONT_SET, 1000);
      assertThrows(DSQuotaExceededException.class, () -> put(FILE, "one"));
      assertThrows(DSQuotaExceededException.class, () -> {
        try (FileAppender file = store.create(TOPIC + "/tmp/data")) {
          file.write(bytes("one"), 0, 3);
          file.sync();
        }
      });
    }
  }
}
