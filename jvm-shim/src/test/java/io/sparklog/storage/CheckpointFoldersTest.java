package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.net.URI;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A local folder, and one that only Hadoop's file systems reach. */
final class CheckpointFoldersTest {
  /** A local disk under another scheme. */
  public static final class Elsewhere extends RawLocalFileSystem {
    @Override
    public URI getUri() {
      return URI.create("elsewhere:///");
    }
  }

  @TempDir
  Path directory;

  @ParameterizedTest
  @ValueSource(strings = {"file:", "", "elsewhere:"})
  void aFileIsPutOnce(String scheme) throws IOException {
    Path sources = directory.resolve("a checkpoint/sources/0");
    Map<String, String> settings = Map.of("fs.elsewhere.impl", Elsewhere.class.getName());
    CheckpointFolder folder = CheckpointFolders.open(scheme + sources, settings::entrySet);
    assertThrows(NoSuchFileException.class, () -> folder.read("0", 100));
    folder.putIfAbsent("0", "0.tmp-a", new byte[] {1, 2, 3});
    assertThrows(FileAlreadyExistsException.class, () -> folder.putIfAbsent("0", "0.tmp-b", new byte[] {4}));
    assertArrayEquals(new byte[] {1, 2, 3}, folder.read("0", 100));
    assertThrows(UnfitFileException.class, () -> folder.read("0", 2));
    assertEquals(List.of("0"), names(sources));
  }

  private static List<String> names(Path folder) throws IOException {
    try (var files = Files.list(folder)) {
      return files.map(file -> file.getFileName().toString()).toList();
    }
  }
}
