package io.sparklog.storage;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.BeforeEach;

/** A store that {@link LogStoreContract} checks, and its traits: the ways in which stores may differ. */
abstract class StoreUnderTest {
  static final String TOPIC = "_partlog/t";
  static final String FILE = TOPIC + "/00000000000000000000.json";
  static final String TEMPORARY = TOPIC + "/tmp/x";

  LogStore store;

  /** A store of a root that does not exist yet. */
  abstract LogStore newStore() throws IOException;

  /** Whether a put writes to the temporary name itself, so that an earlier one could be in its way. */
  boolean writesToTheTemporaryName() {
    return true;
  }

  /** Whether it refuses to create a file that exists. */
  boolean looksBeforeItCreates() {
    return true;
  }

  /** How many races of puts are run: fewer where a put takes long. */
  int races() {
    return 20;
  }

  /** The clock of a local file goes in steps of the kernel's, of up to 10 ms. */
  long clockStepMs() {
    return 20;
  }

  @BeforeEach
  void begin() throws IOException {
    store = newStore();
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  void put(String name, String content) throws IOException {
    store.putIfAbsent(name, TEMPORARY, bytes(content), PutObserver.NONE);
  }

  void createFile(String name, String content) throws IOException {
    try (FileAppender file = store.create(name)) {
      file.write(bytes(content), 0, bytes(content).length);
      file.sync();
    }
  }

  String content(String name) throws IOException {
    return new String(store.read(name, 1 << 20), StandardCharsets.UTF_8);
  }
}
