package io.sparklog.format;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/** Files that other people's programs wrote, under {@code tests/vectors}. */
public final class Vectors {
  private static final List<String> BATCH_FILES = List.of("batches.json", "batches-kafka.json", "batches-kafka-python.json",
      "batches-aiokafka.json");

  private Vectors() {}

  public static JsonNode load(String file) {
    String folder = System.getProperty("sparklog.vectors");
    if (folder == null) {
      throw new IllegalStateException("the system property sparklog.vectors does not name the folder tests/vectors");
    }
    try {
      return new ObjectMapper().readTree(Path.of(folder, file).toFile());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static Stream<JsonNode> batches() {
    return BATCH_FILES.stream().flatMap(file -> StreamSupport.stream(load(file).spliterator(), false));
  }
}
