package io.sparklog.upkeep;

import io.sparklog.log.Names;
import io.sparklog.log.Step;
import io.sparklog.storage.LogStore;
import java.io.IOException;
import java.util.OptionalLong;

/** The data folders of a topic. FORMAT.md sections 2 and 14. */
public final class DataFolders {
  private DataFolders() {}

  /**
   * Deletes all data files in folders whose planned version is below {@code version}, and the folders that are empty then.
   *
   * @return how many files
   */
  public static int deletePlannedBelow(LogStore store, String topic, long version) throws IOException {
    int deleted = 0;
    for (String folder : store.list(Names.topicFile(topic, Names.DATA))) {
      OptionalLong planned = Names.plannedVersion(folder);
      if (planned.isPresent() && planned.getAsLong() < version) {
        deleted += delete(store, topic, Names.DATA + "/" + folder);
      }
    }
    return deleted;
  }

  private static int delete(LogStore store, String topic, String folder) throws IOException {
    int deleted = 0;
    for (String name : store.list(Names.topicFile(topic, folder))) {
      if (Names.isDataFile(folder + "/" + name)) {
        Step.DELETE_FILE.reached();
        store.delete(Names.topicFile(topic, folder + "/" + name));
        deleted++;
      }
    }
    store.deleteFolderIfEmpty(Names.topicFile(topic, folder));
    return deleted;
  }
}
