package io.sparklog.log;

import io.sparklog.json.Damaged;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.ReadStore;
import io.sparklog.storage.UnfitFileException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;

/**
 * Finds a state of a topic: from an earlier state, or from a listing of the topic's folder, the newest checkpoint, and the versions
 * after it. FORMAT.md sections 9.1 and K.1.
 *
 * <p>The file from which a state was built is looked at in the end, and not before. Version files are deleted from the lowest on, so while
 * the first is there, so are those after it.
 */
final class TopicLoad {
  private final ReadStore store;
  private final String topic;
  private final VersionFiles files;
  private final boolean producers;

  /** @param producers whether its states know the producers of the topic */
  TopicLoad(ReadStore store, String topic, VersionFiles files, boolean producers) {
    this.producers = producers;
    this.store = store;
    this.topic = topic;
    this.files = files;
  }

  /**
   * The files that were read need not belong together, as version files are deleted while others read. It is an error only if the next
   * attempt meets the same.
   */
  private static final class Moved extends Exception {
    private final String begun;
    private final long version;
    private final transient PartlogException error;

    /**
     * @param begun where the attempt began
     * @param version where it ended
     * @param error the error to throw if nothing was deleted during the attempt
     */
    private Moved(String begun, long version, PartlogException error) {
      super(error);
      this.begun = begun;
      this.version = version;
      this.error = error;
    }

    private boolean isAgain(Moved before) {
      return before != null && begun.equals(before.begun) && version == before.version && error.id().equals(before.error.id());
    }
  }

  /** The newest state; null if the topic has never existed. @param known an earlier state, from which it is found; null without one */
  State newest(State known) throws IOException {
    State found = known == null ? null : since(known);
    if (found != null) {
      return found;
    }
    Moved before = null;
    long lastBefore = -1;
    while (true) {
      ReadStore.Listing listing = files.list();
      // The name of a checkpoint, even of a damaged one, tells that its version was committed.
      long last = Names.newest(listing.names());
      if (last < 0) {
        return null;
      }
      try {
        return new Lookup(listing, last, true).state();
      } catch (Moved now) {
        // If versions were committed during the attempt, files were deleted too, and a slow listing may miss what took their place.
        if (last == lastBefore && now.isAgain(before)) {
          throw now.error;
        }
        before = now;
        lastBefore = last;
      }
    }
  }

  /** The newest state, by the versions after {@code known}; null if a listing is needed. */
  private State since(State known) throws IOException {
    Replay builder = new Replay(known);
    if (files.replay(builder) && files.isUnchanged(known)) {
      boolean isNew = builder.nextVersion() > known.version() + 1 || builder.tagged() > known.tagged();
      return isNew ? builder.build() : known;
    }
    return null;
  }

  /** The state at {@code version}, which a checkpoint up to that version or version 0 leads to; null where their files are gone. */
  State at(long version) throws IOException {
    try {
      return new Lookup(files.list(), version, false).state();
    } catch (Moved gone) {
      return null;
    }
  }

  /**
   * The state of {@code next}, a version 0 that this process has put when no version was there. Null if the listing has more than that
   * version, or is not in order. FORMAT.md section K.1.
   */
  State begunBy(Replay next) throws IOException {
    ReadStore.Listing listing = files.list();
    String tag = listing.isInOrder() && Names.newest(listing.names()) == 0 && checkpoints(listing.names()).isEmpty()
        ? files.tag(0, listing)
        : null;
    if (tag == null) {
      return null;
    }
    next.tag(tag, 0);
    return next.build();
  }

  /** Whether readers can begin at the checkpoint {@code name}: it is read whole, and is of the version that is there. */
  boolean isWhole(String name) throws IOException {
    try {
      Replay checkpoint = Checkpoint.read(store, topic, name);
      byte[] version = files.readIfPresent(checkpoint.head().fields().version());
      return version != null && checkpoint.head().isOf(version) && agree(checkpoint.head(), version);
    } catch (Damaged damaged) {
      return false;
    } catch (IOException e) { // Another checkpoint may be readable.
      if (PartlogException.isInterrupt(e)) {
        throw e;
      }
      return false;
    }
  }

  private boolean agree(State.Head checkpoint, byte[] version) {
    return checkpoint.agreesWith(files.parse(version, checkpoint.fields().version()));
  }

  /** The checkpoints among {@code names}, the newest first. */
  private static List<String> checkpoints(Collection<String> names) {
    return names.stream().filter(name -> Names.checkpointVersion(name).isPresent()).sorted(Comparator.reverseOrder()).toList();
  }

  /** One attempt to find a state by a listing. */
  private final class Lookup {
    private ReadStore.Listing listing;
    private long last;
    private final boolean isOfNewest;
    private final List<String> checkpoints;

    /** Whether versions after {@link #last} are not looked for: another listing in order has them, or they are not wanted. */
    private final boolean isToLast;

    /** The checkpoint where it began; before version 0 all that could not be used, and which of them are gone. */
    private String begun = "";

    /** The version of the first file that is needed. */
    private long first;

    /** Why the newest checkpoint that may be whole could not be read; null without such a checkpoint. */
    private IOException failure;

    /**
     * @param last the version up to which versions are needed
     * @param isOfNewest whether the newest state is wanted, and so the versions after {@code last} too
     */
    private Lookup(ReadStore.Listing listing, long last, boolean isOfNewest) {
      this.listing = listing;
      this.last = last;
      this.isOfNewest = isOfNewest;
      this.checkpoints = checkpoints(listing.names()).stream()
          .filter(name -> isOfNewest || Names.checkpointVersion(name).orElseThrow() <= last)
          .toList();
      this.isToLast = !isOfNewest || listing.isInOrder() && checkpoints.isEmpty();
    }

    private State state() throws IOException, Moved {
      StringBuilder tried = new StringBuilder();
      for (String checkpoint : checkpoints) {
        begun = checkpoint;
        Replay builder = readable(checkpoint);
        State found = builder == null ? null : since(builder);
        if (found != null) {
          return found;
        }
        tried.append(checkpoint).append(store.exists(Names.topicFile(topic, checkpoint)) ? " " : " gone ");
      }
      // Those that were tried: if another one comes before the next attempt, or one goes, the next attempt is not the same again.
      begun = tried.toString();
      return sinceVersion0();
    }

    /**
     * The state in a checkpoint; null if it is damaged, gone or cannot be read, for others may do.
     *
     * @throws PartlogException FORMAT_TOO_NEW
     */
    private Replay readable(String name) throws IOException {
      try {
        return Checkpoint.read(store, topic, name, listing.files().get(name), producers);
      } catch (Damaged | NoSuchFileException | UnfitFileException damagedOrGone) {
        return null;
      } catch (IOException e) {
        if (PartlogException.isInterrupt(e)) {
          throw e;
        }
        failure = failure == null ? e : failure;
        return null;
      }
    }

    /** @return null if the checkpoint is damaged */
    private State since(Replay builder) throws IOException, Moved {
      State.Head checkpoint = builder.head();
      begin(builder, checkpoint.fields().version());
      try {
        replay(builder);
      } catch (PartlogException | Moved wrong) {
        // A version that follows a damaged checkpoint need not be wrong.
        if (!isWhole(checkpoint)) {
          return null;
        }
        throw wrong;
      }
      return isWhole(checkpoint) ? builder.build() : null;
    }

    /**
     * Whether the checkpoint agrees with its version. The bytes of this version prove that the file is still the file which was there at
     * the beginning, too.
     */
    private boolean isWhole(State.Head checkpoint) throws IOException, Moved {
      byte[] bytes = files.readIfPresent(first);
      if (bytes == null) {
        throw missing(first);
      }
      if (!checkpoint.isOf(bytes)) {
        throw new Moved(begun, first, files.corrupt(null, first, "it is not the version that " + begun + " is of"));
      }
      return agree(checkpoint, bytes);
    }

    private State sinceVersion0() throws IOException, Moved {
      Replay builder = new Replay(producers);
      String tag = begin(builder, 0);
      replay(builder);
      while (isOfNewest) {
        listing = files.list();
        if (!isStillThere(tag)) {
          throw missing(0);
        }
        last = Names.newest(listing.names());
        if (!isToLast || last < builder.nextVersion()) {
          break;
        }
        replay(builder); // They came meanwhile.
      }
      return builder.build();
    }

    /**
     * Whether version 0 is still the file that was read, by another listing. A writer that slept through the clean-up may have put this
     * file. But then a checkpoint exists that was not tried.
     */
    private boolean isStillThere(String tag) throws IOException {
      return checkpoints.containsAll(checkpoints(listing.names())) && tag.equals(files.tag(0, listing));
    }

    /** @return the tag of the file of {@code version}, from before it is read */
    private String begin(Replay builder, long version) throws IOException, Moved {
      first = version;
      String tag = files.tag(version, listing);
      if (tag == null) {
        throw missing(version);
      }
      builder.tag(tag, version);
      return tag;
    }

    private void replay(Replay builder) throws IOException, Moved {
      boolean follow = files.replay(builder, last, isToLast, listing);
      long next = builder.nextVersion();
      if (!follow) {
        throw new Moved(begun, next,
            files.corrupt(null, next, "it does not follow version " + (next - 1) + " (its field previous or topicId differs)"));
      }
      if (next <= last) {
        throw missing(next);
      }
    }

    /** Nothing is missing if a checkpoint above it could not be read: the store failed. */
    private Moved missing(long version) {
      return new Moved(begun, version,
          failure != null
              ? PartlogException.io(failure, store.location(Names.topicFolder(topic)))
              : PartlogException.of("VERSION_MISSING", "version", version, "topic", topic, "root", store.root(), "newest", last));
    }
  }
}
