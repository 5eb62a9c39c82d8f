package io.sparklog.log;

import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.ReadStore;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** Segments in the folders of partitions that do not exist: a deleted topic has left them, or somebody has copied them from a broker. */
public final class ForeignSegments {
  private static final int PARTITIONS_SHOWN = 20;

  private ForeignSegments() {}

  /**
   * Checks that the Kafka view of partitions that are about to be created would replace nothing.
   *
   * @param first of them; 0 if the topic is created
   * @param end the number of partitions afterwards
   * @throws PartlogException FOREIGN_SEGMENTS
   */
  public static void requireNone(TopicLog log, int first, int end) throws IOException {
    LogStore store = log.store();
    if (store.isRemote()) {
      return;
    }
    List<String> files = new ArrayList<>();
    List<Integer> in = new ArrayList<>();
    for (int partition = first; partition < end; partition++) {
      String folder = Names.viewFolder(log.topic(), partition);
      List<String> found = names(store, folder);
      if (!found.isEmpty()) {
        found.forEach(name -> files.add(store.location(folder + "/" + name)));
        in.add(partition);
      }
    }
    // If another writer has created these partitions in the meantime, the files are their own.
    if (!files.isEmpty() && log.latest().map(State::partitions).orElse(0) <= first) {
      throw PartlogException.of("FOREIGN_SEGMENTS", "topic", log.topic(), "root", store.root(), "count", files.size(), "partitions",
          shown(in), "file", files.get(0));
    }
  }

  /**
   * Removes the files of a deleted topic in the folders of partitions that the next topic lacks. When these partitions are added later, the
   * files would seem to be foreign.
   *
   * @param first the number of partitions of the topic that is about to begin
   */
  static void removeLeft(TopicLog log, State deleted, int first) throws IOException {
    LogStore store = log.store();
    for (int partition = first; !store.isRemote() && partition < deleted.partitions(); partition++) {
      String folder = Names.viewFolder(log.topic(), partition);
      List<String> left = names(store, folder);
      if (left.isEmpty()) {
        continue;
      }
      if (log.latest().filter(latest -> latest.version() == deleted.version()).isEmpty()) {
        return; // Another writer has begun the topic, and the files may be its own.
      }
      for (String name : left) {
        store.delete(folder + "/" + name);
      }
      store.deleteFolderIfEmpty(folder);
    }
  }

  private static List<String> names(ReadStore store, String folder) throws IOException {
    return store.list(folder).stream().filter(name -> Names.viewBase(name).isPresent()).sorted().toList();
  }

  /** {@code 0, 1, 4}; of many, the first ones and how many more there are. */
  private static String shown(List<Integer> partitions) {
    String first = partitions.stream().limit(PARTITIONS_SHOWN).map(String::valueOf).collect(Collectors.joining(", "));
    return partitions.size() <= PARTITIONS_SHOWN ? first : first + " and " + (partitions.size() - PARTITIONS_SHOWN) + " more";
  }
}
