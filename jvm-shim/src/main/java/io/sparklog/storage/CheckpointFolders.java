package io.sparklog.storage;

import java.io.IOException;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/** Opens folders of queries' checkpoints. */
public final class CheckpointFolders {
  private CheckpointFolders() {}

  /**
   * The folder at {@code location}, as Spark names it: by a store as roots have, if there is one for it, elsewhere by Hadoop's file
   * systems.
   *
   * @param settings of Hadoop, where it is needed
   */
  public static CheckpointFolder open(String location, Supplier<Iterable<Map.Entry<String, String>>> settings) throws IOException {
    return Stores.isKnown(location) ? new InStore(Stores.open(location, settings)) : HadoopFolder.open(location, settings.get());
  }

  private record InStore(LogStore store) implements CheckpointFolder {
    @Override
    public String location(String name) {
      return name.isEmpty() ? store.root() : store.location(name);
    }

    @Override
    public Optional<String> above(String name) {
      return store.above(name);
    }

    @Override
    public byte[] read(String name, int bytesMax) throws IOException {
      return store.read(name, bytesMax);
    }

    @Override
    public void putIfAbsent(String name, String temporary, byte[] content) throws IOException {
      store.createFolder("");
      store.putIfAbsent(name, temporary, content, PutObserver.NONE);
    }
  }
}
