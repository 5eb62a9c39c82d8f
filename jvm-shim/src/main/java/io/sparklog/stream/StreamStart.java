package io.sparklog.stream;

import io.sparklog.log.QueryStart;
import io.sparklog.log.State;
import io.sparklog.log.Step;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.CheckpointFolder;
import io.sparklog.storage.UnfitFileException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.Collections;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.random.RandomGenerator;

/** Which topics a query reads, by their ids, and where it began: what its checkpoint says. FORMAT.md annex F. */
public final class StreamStart {
  private final CheckpointFolder folder;
  private final RandomGenerator random;
  private final TreeMap<String, QueryStart.Topic> topics = new TreeMap<>();
  private QueryStart first;
  private int files;

  /**
   * Reads the existing files.
   *
   * @param random names temporary files
   * @throws PartlogException QUERY_CHECKPOINT_CORRUPT, FORMAT_TOO_NEW, IO; CHECKPOINT_IN_ROOT if the query is new
   */
  public StreamStart(CheckpointFolder folder, RandomGenerator random) {
    this.folder = folder;
    this.random = random;
    readOn();
    if (first == null) {
      QueryStart.requireOutsideOfRoots(folder);
    }
  }

  /** Takes in the files that other drivers of the query have put since. */
  void readOn() {
    while (readNext()) {
      // The files have no gaps.
    }
  }

  /** The folder of the checkpoint, for messages. */
  public String checkpoint() {
    return folder.location("");
  }

  /** Where the query began; empty if it is new. */
  Optional<SortedMap<String, QueryStart.Topic>> first() {
    return Optional.ofNullable(first).map(QueryStart::topics);
  }

  /**
   * Spark has logged an offset of the query, so the first file must be there.
   *
   * @throws PartlogException QUERY_CHECKPOINT_CORRUPT
   */
  void requireFirst() {
    if (first == null) {
      readOn();
    }
    if (first == null) {
      throw corrupt(null, "0", "it does not exist, and Spark's log has an offset that the query reached");
    }
  }

  /** The topics that the files name; of several of one name, the last. */
  SortedMap<String, QueryStart.Topic> topics() {
    return Collections.unmodifiableSortedMap(topics);
  }

  /** The topic that the last file with its name means. */
  Optional<QueryStart.Topic> topic(String name) {
    return Optional.ofNullable(topics.get(name));
  }

  /** Whether the files name the topic of {@code state}, and no later topic of its name. */
  boolean isOf(State state) {
    return topic(state.topic()).filter(known -> known.id().equals(state.topicId())).isPresent();
  }

  /** The first offset to read of a partition. */
  long offset(String topic, int partition) {
    return topic(topic).map(known -> known.offsets().get(partition)).orElse(0L);
  }

  /**
   * Puts the next file, unless another driver of the query was first: then that one's counts.
   *
   * @throws PartlogException QUERY_CHECKPOINT_CORRUPT, FORMAT_TOO_NEW, IO
   */
  void add(QueryStart found) {
    String name = Integer.toString(files);
    try {
      Step.SOURCES_PUT.reached();
      folder.putIfAbsent(name, QueryStart.temporary(name, random), found.toBytes());
    } catch (IOException e) {
      // It may be there nevertheless, by this driver or another.
      if (!readNext()) {
        throw PartlogException.io(e, folder.location(name));
      }
      return;
    }
    if (!readNext()) {
      throw PartlogException.io(new NoSuchFileException(folder.location(name)), folder.location(name));
    }
  }

  /** Takes in the next file; false without a next file. */
  private boolean readNext() {
    String name = Integer.toString(files);
    QueryStart found;
    try {
      found = QueryStart.parse(folder.read(name, QueryStart.BYTES_MAX), folder.location(name));
    } catch (NoSuchFileException absent) {
      return false;
    } catch (UnfitFileException e) {
      throw corrupt(e, name, e.getReason());
    } catch (IOException e) {
      throw PartlogException.io(e, folder.location(name));
    }
    found.topics().forEach((topic, about) -> {
      QueryStart.Topic before = topics.put(topic, about);
      if (before != null && before.id().equals(about.id())) {
        throw corrupt(null, name, "it names topic " + topic + ", which an earlier file names with the same id");
      }
    });
    first = files == 0 ? found : first;
    files++;
    return true;
  }

  /** QUERY_CHECKPOINT_CORRUPT, in a file of this folder. */
  PartlogException corrupt(Exception cause, String file, String reason) {
    return PartlogException.caused(cause, "QUERY_CHECKPOINT_CORRUPT", "file", folder.location(file), "reason", reason);
  }
}
