package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.sparklog.kit.FaultyServer;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.NoSuchFileException;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.function.Executable;

/** Reads from a real S3 server, behind a proxy that ends their connections; {@code make test-stores} starts both. */
@EnabledIfSystemProperty(named = "stores.s3proxy", matches = ".+")
final class S3ReadsTest {
  private static final String FILE = StoreUnderTest.FILE;

  private final StoreRef ref = StoreSettings.newRoot("stores.s3proxy", Map.of());
  private final FaultyServer server = new FaultyServer(ref.settings().get("fs.s3a.endpoint"));

  /** The client has an EOFException for it, also for the look at the length: not one of the file. */
  @Test
  void aReadWithoutAnAnswerFindsNoEndOfTheFile() throws Exception {
    server.begin(List.of());
    S3Store store = StoreSettings.impatient(ref, 1, 1);
    store.putIfAbsent(FILE, "_partlog/t/tmp/x", "one".getBytes(StandardCharsets.UTF_8), PutObserver.NONE);
    try (FileReader reader = store.open(FILE)) {
      for (String kind : List.of("cut", "lose")) {
        server.begin(List.of(Map.of("kind", kind, "method", "GET|HEAD", "key", FILE, "times", 99)));
        for (Executable read : List.<Executable>of(() -> store.read(FILE, 9), () -> reader.read(0, ByteBuffer.allocate(3)))) {
          IOException e = assertThrows(IOException.class, read);
          assertFalse(e instanceof EOFException || e instanceof NoSuchFileException, e.toString());
        }
      }
    }
    server.begin(List.of());
    assertEquals("one", new String(store.read(FILE, 9), StandardCharsets.UTF_8));
  }
}
