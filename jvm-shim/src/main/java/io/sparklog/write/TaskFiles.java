package io.sparklog.write;

import io.sparklog.log.Root;
import io.sparklog.log.Step;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentBuilder;
import io.sparklog.spec.Warnings;
import io.sparklog.storage.FileAppender;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Requests;
import java.io.Closeable;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** The data files that a task creates. It holds no more of them open than the store allows. */
final class TaskFiles implements Closeable {
  private final LogStore store;
  private final String txn;
  private final int task;
  private final long attempt;
  private final List<String> created = new ArrayList<>();
  private final Set<OwnFile> open = new HashSet<>();
  private long writes;

  /**
   * @param txn the random identity of the write
   * @param attempt a number that no other attempt of any task of the write has
   */
  TaskFiles(LogStore store, String txn, int task, long attempt) {
    this.store = store;
    this.txn = txn;
    this.task = task;
    this.attempt = attempt;
  }

  /** The root, for messages. */
  String root() {
    return store.root();
  }

  /** A partition with this much at the end gets a data file of its own. */
  int ownFileBytes(TopicPlan plan) {
    return SegmentBuilder.ownFileBytes(store, plan.config().hasView());
  }

  /** A data file for one partition alone, which is created when it is first written to. @param sequence 0, 1, 2, … for each partition */
  OwnFile ownFile(TopicPlan plan, int partition, int sequence) {
    return new OwnFile(plan, plan.folder(txn) + "/" + Names.ownFile(partition, task, attempt, sequence));
  }

  /** The name of the data file that partitions of a topic share, relative to the topic's folder. */
  String sharedName(TopicPlan plan) {
    return plan.folder(txn) + "/" + Names.sharedFile(task, attempt);
  }

  /** Creates the data file of {@link #sharedName}. */
  FileAppender createShared(TopicPlan plan) throws IOException {
    return create(plan, Names.topicFile(plan.topic(), sharedName(plan)));
  }

  /**
   * Begins to sync and close a file that is whole. On a disk, this begins when a caller waits for its end. A caller closes the answer
   * before the file: otherwise the file could appear after it was deleted.
   */
  Requests.Pending<Void> beginSync(FileAppender file) {
    return store.requests().beginChange(() -> {
      try (file) {
        file.sync();
      }
      return null;
    });
  }

  /** Makes the names of a topic's data files durable. */
  void syncNames(TopicPlan plan) throws IOException {
    try {
      store.flush(Names.topicFile(plan.topic(), plan.folder(txn)));
    } catch (NoSuchFileException e) {
      throw refused(plan, e);
    }
  }

  private FileAppender create(TopicPlan plan, String name) throws IOException {
    if (created.isEmpty()) {
      Step.TASK_WRITE.reached();
    }
    created.add(name);
    try {
      return store.create(name);
    } catch (NoSuchFileException e) {
      throw refused(plan, e);
    }
  }

  private FileAppender append(TopicPlan plan, String name) throws IOException {
    try {
      return store.append(name);
    } catch (NoSuchFileException e) {
      throw refused(plan, e);
    }
  }

  /**
   * The reason why a file or the folder of this task is gone. A program deletes the files of a running write only after it has made sure
   * that the write is refused.
   *
   * @return {@code gone} if they are not
   * @throws io.sparklog.spec.PartlogException TOPIC_RECREATED, WRITE_EXPIRED
   */
  private NoSuchFileException refused(TopicPlan plan, NoSuchFileException gone) {
    new Root(store).topic(plan.topic()).latest().ifPresent(latest -> plan.requireWanted(latest, store.root()));
    return gone;
  }

  /** Deletes all files that were created. Best effort: no reader sees files that stay. */
  void delete() {
    for (String name : created) {
      try {
        store.delete(name);
      } catch (IOException e) {
        Warnings.warn(TaskFiles.class, "left {}", name, e);
      }
    }
  }

  /** Closes the files that are open, without a sync. */
  @Override
  public void close() {
    for (OwnFile file : List.copyOf(open)) {
      try {
        file.close();
      } catch (IOException e) {
        Warnings.warn(TaskFiles.class, "closing {} failed", file.name, e);
      }
    }
  }

  /** A data file of one partition: open, or synced and closed until more is written. */
  final class OwnFile {
    private final TopicPlan plan;
    private final String topicName;
    private final String name;
    private FileAppender writer;
    private long bytes;
    private long lastWrite;
    /** The sync of the file, once the file is whole. */
    private Requests.Pending<Void> syncing;

    private OwnFile(TopicPlan plan, String topicName) {
      this.plan = plan;
      this.topicName = topicName;
      this.name = Names.topicFile(plan.topic(), topicName);
    }

    /** Its name, relative to the topic's folder. */
    String topicName() {
      return topicName;
    }

    void write(byte[] content) throws IOException {
      if (writer == null) {
        if (open.size() >= store.openFilesMax()) {
          Collections.min(open, Comparator.comparingLong(file -> file.lastWrite)).syncAndClose();
        }
        writer = bytes == 0 ? create(plan, name) : append(plan, name);
        open.add(this);
      }
      lastWrite = ++writes;
      writer.write(content, 0, content.length);
      bytes += content.length;
    }

    /**
     * Ends the file and the segment that it has, with its index where it gets one. In a store over a network, the sync of the file begins
     * while the task goes on.
     */
    Segment end(SegmentBuilder segment) throws IOException {
      byte[] index = segment.index(store);
      if (index.length > 0) {
        write(index);
      }
      if (writer != null) {
        syncing = beginSync(writer);
      }
      return segment.segment().indexed(index.length);
    }

    void syncAndClose() throws IOException {
      if (writer != null) {
        if (syncing == null) {
          writer.sync();
        } else {
          syncing.answer();
        }
        syncing = null;
        close();
      }
    }

    private void close() throws IOException {
      open.remove(this);
      if (syncing != null) {
        syncing.close();
        syncing = null;
      }
      FileAppender closing = writer;
      writer = null;
      if (closing != null) {
        closing.close();
      }
    }
  }
}
