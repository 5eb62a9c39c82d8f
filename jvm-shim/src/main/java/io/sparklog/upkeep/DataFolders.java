package io.sparklog.upkeep;

import io.sparklog.log.Step;
import io.sparklog.segment.Names;
import io.sparklog.storage.LogStore;
import java.io.IOException;
import java.util.List;
import java.util.OptionalLong;

/** The data folders of a topic. FORMAT.md sections 2 and 12. */
public final class DataFolders {
  private DataFolders() {}

  /**
   * Deletes all data files in folders whose planned version is below {@code version}, and the folders that are empty then.
   *
   * @return how many files
   */
  public static int deletePlannedBelow(LogStore store, String topic, long version) throws IOException {
    List<String> folders = store.list(Names.topicFile(topic, Names.DATA)).stream().filter(name -> isPlannedBelow(name, version)).toList();
    List<Integer> deleted = store.requests().all(folders, folder -> delete(store, topic, Names.DATA + "/" + folder));
    return deleted.stream().mapToInt(Integer::intValue).sum();
  }

  private static boolean isPlannedBelow(String folder, long version) {
    OptionalLong planned = Names.plannedVersion(folder);
    return planned.isPresent() && planned.getAsLong() < version;
  }

  private static int delete(LogStore store, String topic, String folder) throws IOException {
    List<String> files = store.list(Names.topicFile(topic, folder))
        .stream()
        .map(name -> folder + "/" + name)
        .filter(Names::isDataFile)
        .map(file -> Names.topicFile(topic, file))
        .toList();
    store.deleteAll(files, Step.DELETE_FILE::reached);
    store.deleteFolderIfEmpty(Names.topicFile(topic, folder));
    return files.size();
  }
}
