package io.sparklog.transfer;

import io.sparklog.format.BatchHeader;
import io.sparklog.format.IndexBuilder;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.BatchWalk;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFile;
import io.sparklog.segment.SegmentGone;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FileAppender;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.NewFolder;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Copies a topic, from any store, to a folder in the form of a Kafka broker. Each partition gets a directory with its live segments and
 * their indexes, for any {@code kafka.view}. It is the topic as one version has it, and appears as a whole.
 */
public final class KafkaExport {
  /** Beside the directories of partitions, and in each of them: as brokers name these files. */
  private static final String STARTS = "log-start-offset-checkpoint";
  private static final String EPOCHS = "leader-epoch-checkpoint";

  private final TopicLog log;
  private final LogStore to;

  /** By partition, the segments that are written, by their base offsets. */
  private final Map<Integer, Map<Long, Segment>> written = new HashMap<>();
  private final Map<Integer, PartitionFiles> counts = new HashMap<>();

  private KafkaExport(TopicLog log, LogStore to) {
    this.log = log;
    this.to = to;
  }

  /** The files of a partition. */
  private static final class PartitionFiles {
    private int files;
    private long bytes;
  }

  /**
   * A partition as it was written.
   *
   * @param folder its directory
   * @param start its log start offset, which may lie within the first segment
   * @param end its end offset
   * @param files all files in the directory
   * @param bytes the sum of their lengths
   */
  public record Exported(int partition, String folder, long start, long end, int segments, int files, long bytes) {}

  /**
   * Writes the topic that {@code log} is of.
   *
   * @param state its newest state
   * @param to a path: a folder that is empty or absent, under no root
   * @param id a random identity
   * @throws PartlogException EXPORT_TARGET; OPTION_VALUE for a text that is not a path; the errors of a read for files of the topic
   */
  public static List<Exported> export(TopicLog log, State state, String to, String id) {
    try (NewFolder folder = NewFolder.begin(to, Names.FOLDER, id)) {
      KafkaExport export = new KafkaExport(log, folder.store());
      State exported = export.segments(state);
      export.checkpoints(exported);
      folder.finish();
      return export.rows(exported, folder.location());
    } catch (NewFolder.Refused e) {
      throw PartlogException.caused(e, "EXPORT_TARGET", "topic", log.topic(), "root", log.store().root(), "to", to, "reason",
          e.getReason());
    } catch (IOException e) {
      throw PartlogException.io(e, to);
    }
  }

  /**
   * Writes the segments of a state. If a data file is gone then, it goes on with the newest state, and keeps the written segments that this
   * state has too.
   *
   * @return the state that is written
   */
  private State segments(State first) throws IOException {
    State state = first;
    for (;;) {
      try {
        for (int partition = 0; partition < state.partitions(); partition++) {
          drop(state, partition);
          for (Segment segment : state.segments(partition)) {
            if (!isWritten(segment)) {
              write(state, segment);
            }
          }
        }
        return state;
      } catch (SegmentGone e) {
        State now = log.latest().orElseThrow();
        if (now.version() == state.version()) {
          throw e.missing();
        }
        if (now.isDeleted() || !now.topicId().equals(state.topicId())) {
          throw PartlogException.of("TOPIC_REPLACED", "topic", log.topic(), "root", log.store().root());
        }
        state = now;
      }
    }
  }

  private Map<Long, Segment> written(int partition) {
    return written.computeIfAbsent(partition, p -> new HashMap<>());
  }

  /** The same offsets have the same records in every version. */
  private boolean isWritten(Segment segment) {
    Segment there = written(segment.partition()).get(segment.base());
    return there != null && there.end() == segment.end();
  }

  /** Deletes the segments that a state does not have. */
  private void drop(State state, int partition) throws IOException {
    Set<Long> kept = new HashSet<>();
    for (Segment segment : state.segments(partition)) {
      if (isWritten(segment)) {
        kept.add(segment.base());
      }
    }
    for (Segment segment : List.copyOf(written(partition).values())) {
      if (!kept.contains(segment.base())) {
        for (String kind : List.of("log", "index", "timeindex")) {
          String name = name(partition, segment.base(), kind);
          count(partition, -1, -to.bytes(name));
          to.delete(name);
        }
        written(partition).remove(segment.base());
      }
    }
  }

  private String name(int partition, long base, String kind) {
    return Names.viewFolder(log.topic(), partition) + "/" + Names.viewFile(base, kind);
  }

  private void write(State state, Segment segment) throws IOException {
    IndexBuilder index = new IndexBuilder(segment.base(), state.config().indexIntervalBytes());
    String name = name(segment.partition(), segment.base(), "log");
    try (SegmentFile file = SegmentFile.open(log.store(), log.topic(), segment); FileAppender out = to.create(name)) {
      file.expect(segment.position(), segment.endPosition());
      BatchWalk walk = new BatchWalk(file, out::write);
      while (walk.next()) {
        index.batch(walk.position() - segment.position(), walk.last(), BatchHeader.maxTimestamp(walk.buffer(), walk.at()));
        BatchHeader.setBaseOffset(walk.buffer(), walk.at(), walk.base());
      }
      walk.requireHeaderCrc();
      out.sync();
      count(segment.partition(), 1, out.position());
    } catch (SegmentGone e) {
      to.delete(name);
      throw e;
    }
    write(segment.partition(), Names.viewFile(segment.base(), "index"), index.offsetIndex());
    write(segment.partition(), Names.viewFile(segment.base(), "timeindex"), index.timeIndex());
    written(segment.partition()).put(segment.base(), segment);
  }

  private void write(int partition, String name, byte[] content) throws IOException {
    write(Names.viewFolder(log.topic(), partition) + "/" + name, content);
    count(partition, 1, content.length);
  }

  private void write(String name, byte[] content) throws IOException {
    try (FileAppender out = to.create(name)) {
      out.write(content, 0, content.length);
      out.sync();
    }
  }

  private void count(int partition, int files, long bytes) {
    PartitionFiles there = counts.computeIfAbsent(partition, p -> new PartitionFiles());
    there.files += files;
    there.bytes += bytes;
  }

  /** Writes the files that tell a broker more than segments do, and an empty segment where otherwise nothing would keep the end offset. */
  private void checkpoints(State state) throws IOException {
    StringBuilder starts = new StringBuilder("0\n" + state.partitions() + "\n");
    for (int partition = 0; partition < state.partitions(); partition++) {
      List<Segment> segments = state.segments(partition);
      long end = state.end(partition);
      if (segments.isEmpty() || segments.get(segments.size() - 1).end() < end) {
        for (String kind : List.of("log", "index", "timeindex")) {
          write(partition, Names.viewFile(end, kind), new byte[0]);
        }
      }
      // All batches have the epoch 0: FORMAT.md section 3.
      String epochs = segments.isEmpty() ? "0\n0\n" : "0\n1\n0 " + segments.get(0).base() + "\n";
      write(partition, EPOCHS, epochs.getBytes(StandardCharsets.US_ASCII));
      starts.append(log.topic()).append(' ').append(partition).append(' ').append(state.start(partition)).append('\n');
      to.flush(Names.viewFolder(log.topic(), partition));
    }
    write(STARTS, starts.toString().getBytes(StandardCharsets.US_ASCII));
    to.flush("");
  }

  private List<Exported> rows(State state, String folder) {
    List<Exported> rows = new ArrayList<>();
    for (int partition = 0; partition < state.partitions(); partition++) {
      PartitionFiles there = counts.get(partition);
      rows.add(new Exported(partition, folder + "/" + Names.viewFolder(log.topic(), partition), state.start(partition),
          state.end(partition), state.segments(partition).size(), there.files, there.bytes));
    }
    return rows;
  }
}
