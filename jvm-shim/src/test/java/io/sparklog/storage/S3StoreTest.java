package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.time.Clock;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/** A real S3 server, which {@code make test-stores} starts. */
@EnabledIfSystemProperty(named = "stores.s3", matches = ".+")
class S3StoreTest extends LogStoreContract {
  /** This server ends the connection of a long put that loses, so that the client repeats it, until it hears the answer in time. */
  static final Map<String, String> QUICK = Map.of("fs.s3a.retry.interval", "20ms");

  private final StoreRef ref = newRoot();

  /** In the server of this test. */
  StoreRef newRoot() {
    return StoreSettings.newRoot("stores.s3", QUICK);
  }

  @Override
  LogStore newStore() {
    return S3Store.open(ref);
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

  @Override
  boolean looksBeforeItCreates() {
    return false;
  }

  @Override
  long clockStepMs() {
    return 1100;
  }

  private interface Put {
    void put(FileSystem files, Path name, byte[] content) throws IOException;
  }

  private S3Store broken(Put put) throws IOException {
    Path root = new Path(newRoot().root());
    FileSystem files = FileSystem.newInstance(root.toUri(), HadoopSettings.configuration(ref.settings()));
    return new S3Store(new SharedFiles(() -> files, Duration.ofHours(1), Requests.IN_TURN), root, ref.settings()) {
      @Override
      public void putIfAbsent(String name, String temporary, byte[] content, PutObserver observer) throws IOException {
        try {
          put.put(files, path(name), content);
        } catch (IOException e) {
          throw HadoopErrors.translated(location(name), e);
        }
      }
    };
  }

  private static void write(FSDataOutputStream out, byte[] content) throws IOException {
    try (out) {
      out.write(content);
    }
  }

  @Test
  void aPutThatOverwritesIsFound() throws IOException {
    ContractOf store = new ContractOf(broken((files, name, content) -> write(files.create(name, true), content)));
    assertThrows(AssertionError.class, store::aPutNeverReplaces);
  }

  /** {@code create} looks first, and then writes. */
  @Test
  void aPutByCreateIsFound() throws IOException {
    S3Store looking = broken((files, name, content) -> write(files.create(name, false), content));
    assertThrows(AssertionError.class, new ContractOf(looking)::ofEightPutsOneWins);
    PartlogException refused = assertThrows(PartlogException.class, () -> new PutProbe(looking, "_probe").run(PutProbe.KEYS).requireSafe());
    assertEquals("STORE_UNSAFE", refused.id());
  }

  /** The server replaces the note of another process. */
  @Test
  void aProbeFindsNothingHereAndLeavesANote() throws IOException, InterruptedException {
    try (FileAppender old = store.create("_probe/passed.json")) {
      old.write(bytes("{}"), 0, 2);
      old.sync();
    }
    new ServerProbe("here", "bucket").require(store, "_probe", Clock.systemUTC());
    assertEquals(List.of("passed.json"), store.list("_probe"));
    Optional<String> note = store.tag("_probe/passed.json");
    Thread.sleep(clockStepMs());
    new ServerProbe("here", "bucket").require(store, "_probe", Clock.systemUTC());
    assertEquals(note, store.tag("_probe/passed.json"), "the note counts");
    new ServerProbe("there", "bucket").require(store, "_probe", Clock.systemUTC());
    assertNotEquals(note, store.tag("_probe/passed.json"), "it does not count there");
  }

  @Test
  void aStoreWithoutConditionalPutsIsRefused() {
    TreeMap<String, String> settings = new TreeMap<>(ref.settings());
    settings.put("fs.s3a.create.conditional.enabled", "false");
    PartlogException refused = assertThrows(PartlogException.class, () -> Stores.open(new StoreRef(ref.root(), settings)));
    assertEquals("STORE_UNSAFE", refused.id());
    assertEquals(settings.getOrDefault("fs.s3a.endpoint", "S3 of AWS"), refused.parameters().get("endpoint"));
  }

  @Test
  void anAbsentFileIsFoundOnceItIsThere() throws IOException {
    for (int round = 0; round < 2; round++) {
      for (int look = 0; look < 3; look++) {
        assertEquals(Optional.empty(), store.tag(FILE));
      }
      put(FILE, "one");
      assertTrue(store.tag(FILE).isPresent());
      assertTrue(store.tag(FILE).isPresent());
      store.delete(FILE);
    }
  }

  @Test
  void aPutThatCannotBeSentLeavesNothingBehind() throws IOException {
    PutObserver failing = part -> {
      if (part == PutObserver.Stage.WRITTEN) {
        throw new IllegalStateException("before it is sent");
      }
    };
    assertThrows(IllegalStateException.class, () -> store.putIfAbsent(FILE, TEMPORARY, bytes("one"), failing));
    assertFalse(store.exists(FILE));
    put(FILE, "another");
    assertEquals("another", content(FILE));
  }

  /** Its answer is lost, or the server's clock strikes: only one answer says that the put is over. */
  @Test
  void onlyARefusalIsAnAnswer() throws IOException {
    put(FILE, "one");
    assertThrows(FileAlreadyExistsException.class, () -> put(FILE, "one"));
    TreeMap<String, String> settings = new TreeMap<>(ref.settings());
    settings.put("fs.s3a.endpoint", "http://127.0.0.1:1");
    settings.put("fs.s3a.attempts.maximum", "1");
    settings.put("fs.s3a.retry.limit", "0");
    LogStore away = Stores.open(new StoreRef(ref.root(), settings));
    assertThrows(NoAnswerException.class, () -> away.putIfAbsent(FILE, TEMPORARY, bytes("one"), PutObserver.NONE));
  }

  @Test
  void theSameBytesPutAgainHaveAnotherTag() throws IOException, InterruptedException {
    put(FILE, "one");
    String first = store.tag(FILE).orElseThrow();
    store.delete(FILE);
    Thread.sleep(clockStepMs());
    put(FILE, "one");
    assertNotEquals(first, store.tag(FILE).orElseThrow());
  }

  @Test
  void aFileThatIsDeletedWhileItIsReadIsGone() throws IOException {
    byte[] content = new byte[1 << 20];
    try (FileAppender file = store.create(FILE)) {
      file.write(content, 0, content.length);
      file.sync();
    }
    try (FileReader file = store.open(FILE)) {
      file.read(0, content, 0, 10);
      store.delete(FILE);
      assertThrows(NoSuchFileException.class, () -> file.read(900_000, content, 0, 100));
    }
  }

  @Test
  void aFileThatIsNotSyncedIsNotThere() throws IOException {
    try (FileAppender file = store.create(FILE)) {
      file.write(bytes("half"), 0, 4);
      assertFalse(store.exists(FILE));
    }
    assertFalse(store.exists(FILE));
  }

  /** Front to back as it was told, across windows, and elsewhere. */
  @Test
  void expectedBytesAreRead() throws IOException {
    long seed = 28;
    byte[] content = new byte[20 << 20];
    new Random(seed).nextBytes(content);
    try (FileAppender file = store.create(FILE)) {
      file.write(content, 0, content.length);
      file.sync();
    }
    try (FileReader file = store.open(FILE)) {
      int from = 1000;
      int to = content.length - 1000;
      file.expect(from, to);
      byte[] read = new byte[300_000];
      for (int at = from; at < to; at += read.length) {
        int length = Math.min(read.length, to - at);
        file.read(at, read, 0, length);
        assertArrayEquals(Arrays.copyOfRange(content, at, at + length), Arrays.copyOf(read, length), "at " + at);
      }
      file.read(0, read, 0, 100);
      assertArrayEquals(Arrays.copyOf(content, 100), Arrays.copyOf(read, 100));
      file.read(to - 50, read, 0, 100);
      assertArrayEquals(Arrays.copyOfRange(content, to - 50, to + 50), Arrays.copyOf(read, 100));
    }
  }

  @Test
  void lengthsAreThoseOfOneListing() throws IOException {
    createFile(TOPIC + "/data/f/a.log", "12345");
    createFile(TOPIC + "/data/f/b.log", "");
    assertEquals(Map.of("a.log", 5L, "b.log", 0L), store.lengths(TOPIC + "/data/f", Set.of("a.log", "b.log", "c.log")));
    assertEquals(Map.of(), store.lengths(TOPIC + "/data/none", Set.of("a.log")));
  }

  @Test
  void theStreamIsTheOneThatTellsWhatIsGone() throws IOException {
    try (SharedFiles.Use use = assertInstanceOf(S3Store.class, Stores.open(ref)).use()) {
      assertEquals("classic", use.files().getConf().get("fs.s3a.input.stream.type"));
    }
  }
}
