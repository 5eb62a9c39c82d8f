package io.sparklog.admin;

import io.sparklog.log.NextVersion;
import io.sparklog.log.Removals;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.Step;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.Names;
import io.sparklog.spec.Option;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.ReadStore;
import io.sparklog.upkeep.ReplacedFiles;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.function.Predicate;
import java.util.stream.Stream;

/**
 * Deletes the files of dead writers: data files that no version names, and temporary files. Also deletes at once the files that the next
 * commit would delete. FORMAT.md section 12.
 */
public final class Vacuum {
  public static final Duration OLDER_THAN = Duration.ofDays(7);

  /** A write that takes longer than this would be refused. */
  public static final Duration OLDER_THAN_MIN = Duration.ofHours(1);

  private static final Duration TEMPORARY = Duration.ofDays(1);

  private final TopicWork work;
  private final TopicLog log;
  private final LogStore store;
  private final Clock clock;

  /**
   * The files that a vacuum deleted, or would delete.
   *
   * @param files relative to the topic's folder
   * @param horizon from then on; writes that were planned at a lower version are refused
   */
  public record Vacuumed(List<String> files, long bytes, long horizon) {}

  public Vacuum(TopicWork work) {
    this.work = work;
    this.log = work.log();
    this.store = log.store();
    this.clock = work.clock();
  }

  /**
   * Deletes the files that no program needs. If files of dead writers are among it, it first refuses every write that may still name them.
   *
   * @param olderThan how long ago the files must have been written to, all of their folder
   * @param dryRun whether to return only the files to delete
   * @throws PartlogException OPTION_VALUE if {@code olderThan} is too short, TOPIC_NOT_FOUND, TOPIC_RECREATED, IO; the errors of a commit
   */
  public Vacuumed run(Duration olderThan, boolean dryRun) {
    if (olderThan.compareTo(OLDER_THAN_MIN) < 0) {
      throw Option.invalidValue("older_than", olderThan.toString(),
          "it must be at least " + OLDER_THAN_MIN.toHours() + " hour: a write that runs longer could no longer commit");
    }
    State state = log.newest().orElseThrow(() -> Root.notFound(log)).forWriters();
    try {
      ReplacedFiles files = new ReplacedFiles(log, state, clock);
      Leftovers found = new Leftovers(state, files, clock.millis() - olderThan.toMillis());
      // Files whose deletion needs no version come first: on a full disk they make the room for one.
      if (!dryRun) {
        files.delete(found.replaced);
      }
      long bytes = found.bytes + temporary(olderThan.compareTo(TEMPORARY) < 0 ? TEMPORARY : olderThan, dryRun, found.temporary);
      long horizon = Math.max(state.horizon(), found.horizon);
      if (!dryRun && !found.unnamed.isEmpty()) {
        if (horizon > state.horizon()) {
          commit(state, horizon);
        }
        deleteUnnamed(found.unnamed);
      }
      return new Vacuumed(Stream.of(found.replaced, found.unnamed, found.temporary).flatMap(List::stream).toList(), bytes, horizon);
    } catch (IOException e) {
      throw PartlogException.io(e, store.location(Names.topicFile(log.topic(), Names.DATA)));
    }
  }

  /** Only now, as a write may have committed some of them before the horizon rose; and others may have replaced them since. */
  private void deleteUnnamed(List<String> unnamed) throws IOException {
    ReplacedFiles files = new ReplacedFiles(log, log.latest().orElseThrow(), clock);
    Removals removals = files.removals();
    files.delete(unnamed.stream().filter(file -> removals.of(file) == null).toList());
  }

  private void commit(State planned, long horizon) {
    work.commit(new AdministrativeChange(log, planned, "the horizon") {
      @Override
      boolean isIn(State newest) {
        return newest.horizon() >= horizon;
      }

      @Override
      NextVersion change(State newest) {
        return new NextVersion(newest, "vacuum").raiseHorizon(horizon);
      }
    });
  }

  /** Looks at files of the topic: by one listing of their folder where each look would be a request. */
  private final class Looks {
    /** The listings by folder; null before the first listing is needed. */
    private Map<String, Map<String, ReadStore.Listed>> listed;
    private List<String> folders;

    /** The data folders, their last parts only. */
    private List<String> folders() throws IOException {
      if (folders == null) {
        folders = store.list(Names.topicFile(log.topic(), Names.DATA));
      }
      return folders;
    }

    private Collection<String> names(String folder) throws IOException {
      return store.isRemote() ? listed(folder).keySet() : store.list(Names.topicFile(log.topic(), folder));
    }

    private long bytes(String file) throws IOException {
      return store.isRemote() ? listing(file).bytes() : store.bytes(Names.topicFile(log.topic(), file));
    }

    private long modifiedMs(String file) throws IOException {
      return store.isRemote() ? listing(file).modifiedMs() : store.modifiedMs(Names.topicFile(log.topic(), file));
    }

    private ReadStore.Listed listing(String file) throws IOException {
      int slash = file.lastIndexOf('/');
      ReadStore.Listed listing = listed(file.substring(0, slash)).get(file.substring(slash + 1));
      if (listing == null) {
        throw new NoSuchFileException(file);
      }
      return listing;
    }

    private Map<String, ReadStore.Listed> listed(String folder) throws IOException {
      if (listed == null) {
        Map<String, Map<String, ReadStore.Listed>> all = new HashMap<>();
        List<String> folders = folders().stream().map(name -> Names.DATA + "/" + name).toList();
        store.requests().each(folders, name -> store.listing(Names.topicFile(log.topic(), name)).files(), (name, files) -> {
          all.put(name, files);
          return true;
        });
        listed = all;
      }
      return listed.getOrDefault(folder, Map.of());
    }
  }

  /** The files that may go. */
  private final class Leftovers {
    /** Those that versions removed, if they have waited for long enough. */
    private final List<String> replaced = new ArrayList<>();

    /** Those that no version names, of folders in which nothing was written for long. */
    private final List<String> unnamed = new ArrayList<>();

    private final List<String> temporary = new ArrayList<>();
    private final Looks looks = new Looks();
    private long bytes;

    /** One above the greatest planned version of the folders of {@link #unnamed}. */
    private long horizon;

    private Leftovers(State state, ReplacedFiles files, long beforeMs) throws IOException {
      Removals removals = files.removals();
      for (String file : removals.files()) {
        if (!files.live().contains(file) && files.isDue(removals.of(file))) {
          try {
            bytes += looks.bytes(file);
            replaced.add(file);
          } catch (NoSuchFileException gone) {
            continue;
          }
        }
      }
      for (String folder : looks.folders()) {
        OptionalLong planned = Names.plannedVersion(folder);
        // A greater one is of no writer, and would be a horizon that refuses all.
        if (planned.isPresent() && planned.getAsLong() <= state.version() + 1) {
          look(Names.DATA + "/" + folder, planned.getAsLong(), file -> files.live().contains(file) || removals.of(file) != null, beforeMs);
        }
      }
    }

    private void look(String folder, long planned, Predicate<String> named, long beforeMs) throws IOException {
      List<String> found = new ArrayList<>();
      long length = 0;
      for (String name : looks.names(folder)) {
        String file = folder + "/" + name;
        if (Names.isDataFile(file)) {
          try {
            if (looks.modifiedMs(file) >= beforeMs) {
              return;
            }
            if (!named.test(file)) {
              length += looks.bytes(file);
              found.add(file);
            }
          } catch (NoSuchFileException gone) {
            continue;
          }
        }
      }
      if (!found.isEmpty()) {
        unnamed.addAll(found);
        bytes += length;
        horizon = Math.max(horizon, planned + 1);
      }
    }
  }

  /** Adds the temporary files that are that old to {@code files}, and deletes them. @return their bytes */
  private long temporary(Duration age, boolean dryRun, List<String> files) throws IOException {
    long bytes = 0;
    for (String name : store.list(Names.topicFile(log.topic(), Names.TEMPORARY))) {
      String file = Names.topicFile(log.topic(), Names.TEMPORARY + "/" + name);
      try {
        if (store.modifiedMs(file) < clock.millis() - age.toMillis()) {
          bytes += store.bytes(file);
          files.add(Names.TEMPORARY + "/" + name);
          if (!dryRun) {
            Step.DELETE_FILE.reached();
            store.delete(file);
          }
        }
      } catch (NoSuchFileException gone) {
        continue;
      }
    }
    return bytes;
  }
}
