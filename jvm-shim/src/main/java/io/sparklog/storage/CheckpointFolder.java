package io.sparklog.storage;

import java.io.IOException;
import java.util.Optional;

/**
 * The folder that Spark gives a source in a query's checkpoint, where the source keeps the topics of the query and its first offsets.
 * FORMAT.md annex F. No commit depends on it.
 */
public interface CheckpointFolder {
  /** The full name of {@code name}, for messages; "" is the folder. */
  String location(String name);

  /** As {@link ReadStore#above}; empty where that cannot be told. */
  Optional<String> above(String name);

  /** As {@link ReadStore#read}. */
  byte[] read(String name, int bytesMax) throws IOException;

  /**
   * As {@link LogStore#putIfAbsent}; creates the folder too.
   *
   * @param temporary a name in the folder that no other caller uses
   */
  void putIfAbsent(String name, String temporary, byte[] content) throws IOException;
}
