package io.sparklog.sim;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.sparklog.sim.Known.Segment;
import io.sparklog.log.State;
import io.sparklog.storage.MemoryDisk;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * The truth about the topic, kept beside the store: its versions in the order in which they were linked first, read by code of its own.
 * Each check names the invariant of FORMAT.md section 11.
 */
final class Truth {
  static final String TOPIC = "t";
  static final String FOLDER = "_partlog/" + TOPIC + "/";

  private static final ObjectMapper JSON = new ObjectMapper();

  /** A broken invariant. */
  static final class Broken extends RuntimeException {
    Broken(String what) {
      super(what);
    }
  }

  private final MemoryDisk disk;
  private final List<Known> versions = new ArrayList<>();
  /** By topic id and partition the records, from offset 0 on, for ever. */
  private final Map<String, List<String>> log = new HashMap<>();
  /** The records that were written between two deletions of the topic; a power loss may take the last deletion. */
  private static final class Life {
    /** How often a record was committed. */
    final Map<String, Integer> counts = new HashMap<>();
    final List<List<String>> notDone = new ArrayList<>();
    /** The records that were reported done. */
    final List<String> promised = new ArrayList<>();
    /** In which version a record was committed. */
    final Map<String, Long> committedIn = new HashMap<>();
  }

  private final Deque<Life> lives = new ArrayDeque<>(List.of(new Life()));
  /** The data files that were deleted; a power loss may bring them back. */
  private final Set<String> deleted = new HashSet<>();
  private int merges;
  private int cleaned;

  Truth(MemoryDisk disk) {
    this.disk = disk;
  }

  int count() {
    return versions.size();
  }

  int merges() {
    return merges;
  }

  int cleaned() {
    return cleaned;
  }

  private Life now() {
    return lives.element();
  }

  /** How often the topic was deleted. */
  int life() {
    return lives.size() - 1;
  }

  /** The newest version; null if there is none. */
  Known top() {
    return versions.isEmpty() ? null : versions.get(versions.size() - 1);
  }

  List<Known> versions() {
    return versions;
  }

  /** The ids of the topics that the name has had. */
  List<String> topicIds() {
    return versions.stream().map(Known::topicId).distinct().toList();
  }

  boolean isDeleted(String topicId) {
    return versions.stream().anyMatch(known -> known.deleted() && known.topicId().equals(topicId));
  }

  /** The record at an offset of a topic; null if there never was one. */
  String record(String topicId, int partition, long offset) {
    List<String> records = log.getOrDefault(topicId + partition, List.of());
    return offset < records.size() ? records.get((int) offset) : null;
  }

  /** A version file came to be. @param name of the file */
  void linked(String name) throws IOException {
    long number = Long.parseLong(name.substring(FOLDER.length(), FOLDER.length() + 20));
    String tag = disk.peekTag(name).orElseThrow();
    if (number < versions.size()) {
      return; // A writer that slept through the clean-up put it: no reader may ever take it for a commit.
    }
    byte[] bytes = disk.peek(name).orElseThrow();
    int line = new String(bytes, StandardCharsets.UTF_8).indexOf('\n');
    JsonNode json = JSON.readTree(Arrays.copyOf(bytes, line));
    Known before = top();
    String previous = before == null ? null : Records.sha256(disk.peek(file(before.version())).orElse(new byte[0]));
    boolean follows = json.path("previous").isNull() ? before == null : json.path("previous").asText().equals(previous);
    if (number > versions.size() || !follows) {
      throw new Broken("I10: a stray version file " + number + " stands in a topic that has " + versions.size());
    }
    if (before != null) {
      requireDurable(before.version(), name);
    }
    Known after = Replayed.apply(before, json, tag);
    for (JsonNode added : json.path("added")) {
      List<String> records = add(after, Replayed.segment(added), json.path("operation").asText());
      boolean isRouted = json.path("operation").asText().equals("write") && records.stream().noneMatch(Served::isOfClient);
      Cuts.requireOneEpoch(versions, after, Replayed.segment(added), isRouted);
    }
    requireSwept(before == null ? 0 : before.number("boundary"), after);
    versions.add(after);
    merges += json.path("operation").asText().equals("merge") ? 1 : 0;
    if (after.deleted()) {
      lives.push(new Life());
    }
  }

  /** A checkpoint or a deletion marker came to be. @param name of the file */
  void noted(String name) {
    requireDurable(Long.parseLong(name.substring(FOLDER.length(), FOLDER.length() + 20)), name);
  }

  /** A power loss may not take a version and leave what rests on it. */
  private void requireDurable(long version, String name) {
    if (isThere(version) && !disk.isDurable(file(version))) {
      throw new Broken("I10: " + name + " is there, and a power loss would take version " + version);
    }
  }

  /** A version that was true stands under a new name no more. @param tag of what stood there */
  void replaced(String name, String tag) {
    long number = Long.parseLong(name.substring(FOLDER.length(), FOLDER.length() + 20));
    if (number < versions.size() && versions.get((int) number).tag().equals(tag)) {
      throw new Broken("I1: version " + number + " was replaced");
    }
  }

  /** Whether a name is that of a version file. */
  static boolean isVersion(String name) {
    return name.endsWith(".json") && name.startsWith(FOLDER) && name.length() == FOLDER.length() + 25;
  }

  static String file(long version) {
    return FOLDER + String.format("%020d.json", version);
  }

  private List<String> add(Known version, Segment segment, String operation) {
    String name = FOLDER + segment.file();
    byte[] bytes = disk.peek(name).orElse(new byte[0]);
    if (bytes.length < segment.position() + segment.bytes()) {
      throw new Broken("I2: version " + version.version() + " names bytes that are gone: " + name);
    }
    if (!disk.isDurable(name)) {
      throw new Broken("I2: version " + version.version() + " names bytes that a power loss would take: " + name);
    }
    List<String> records = Records.values(bytes, segment);
    if (records.size() != segment.end() - segment.base()) {
      throw new Broken("I2: a segment of version " + version.version() + " has another number of records");
    }
    if (operation.equals("write")) {
      Homes.requireRouted(Stream.concat(versions.stream(), Stream.of(version)).toList(), version, segment.partition(), records);
    }
    List<String> known = log.computeIfAbsent(version.topicId() + segment.partition(), absent -> new ArrayList<>());
    for (int i = 0; i < records.size(); i++) {
      int offset = (int) segment.base() + i;
      if (offset == known.size()) {
        known.add(records.get(i));
      } else if (offset > known.size() || !known.get(offset).equals(records.get(i))) {
        throw new Broken(
            "I4: the record at " + offset + " of partition " + segment.partition() + " changes in version " + version.version());
      }
      if (operation.equals("write")) {
        now().committedIn.put(records.get(i), version.version());
        if (now().counts.merge(records.get(i), 1, Integer::sum) > 1) {
          throw new Broken("I3: " + records.get(i) + " was committed twice");
        }
      }
    }
    return records;
  }

  /** No program looks for files that versions below a boundary removed: each was deleted, or another segment of it is live, or was. */
  private void requireSwept(long boundary, Known raising) {
    if (raising.deleted() || raising.number("boundary") == boundary) {
      return;
    }
    int raised = (int) raising.number("boundary");
    Set<String> found = raising.files();
    found.addAll(raising.removed());
    versions.subList(raised, versions.size()).forEach(known -> found.addAll(known.removed()));
    for (Known below : versions.subList((int) boundary, raised)) {
      for (String file : below.removed()) {
        if (!found.contains(file) && !deleted.contains(file) && disk.peekTag(FOLDER + file).isPresent()) {
          throw new Broken("I9: the boundary rises above version " + below.version() + ", which removed " + file + ", and that is there");
        }
      }
    }
  }

  /** A name is about to be deleted. */
  void deletes(String name) {
    if (!name.startsWith(FOLDER) || disk.peekTag(name).isEmpty()) {
      return;
    }
    String inner = name.substring(FOLDER.length());
    if (inner.startsWith("data/")) {
      requireDead(inner);
      deleted.add(inner);
    }
    boolean isVersion = isVersion(name);
    if (isVersion || isCheckpoint(inner)) {
      requireBeginning(Long.parseLong(inner.substring(0, 20)), name);
    }
    cleaned += isVersion ? 1 : 0;
  }

  /** Whether a name is that of a checkpoint or of a deletion marker. */
  static boolean isNote(String name) {
    String inner = name.startsWith(FOLDER) ? name.substring(FOLDER.length()) : "/";
    return isCheckpoint(inner) || inner.endsWith(".deleted") && !inner.contains("/");
  }

  private static boolean isCheckpoint(String file) {
    return file.contains(".checkpoint-") && !file.contains("/");
  }

  /** Readers find a checkpoint above what is deleted, also after a power loss. */
  private void requireBeginning(long version, String name) {
    boolean found = disk.list(FOLDER.substring(0, FOLDER.length() - 1))
        .stream()
        .filter(Truth::isCheckpoint)
        .anyMatch(file -> Long.parseLong(file.substring(0, 20)) > version && disk.isDurable(FOLDER + file));
    if (!found) {
      throw new Broken("I10: " + name + " is deleted, and a power loss would leave no checkpoint above it");
    }
  }

  /** No state names a data file: neither the newest, nor one that a power loss would go back to. */
  private void requireDead(String file) {
    for (int at = versions.size() - 1; at >= 0; at--) {
      Known known = versions.get(at);
      if (known.files().contains(file)) {
        throw new Broken(at == versions.size() - 1
            ? "I2: a live data file is deleted: " + file
            : "I1: a data file is deleted that is live again after a power loss: " + file);
      }
      if (disk.isDurable(file(known.version()))) {
        return;
      }
    }
  }

  /** A call that began when there were {@code since} versions gave {@code found} as the newest state, also of a deleted topic. */
  void requireNewest(int since, Optional<State> found) {
    long number = found.map(State::version).orElse(-1L);
    boolean inTime = number >= since - 1 && number < versions.size();
    if (inTime && found.isPresent() && !found.get().isDeleted() && !Cuts.areKnown(versions, found.get(), versions.get((int) number))) {
      throw new Broken(
          "I5: a snapshot at version " + number + " does not know where re-routes cut the partitions: " + found.get().routing());
    }
    if (!inTime || found.isPresent() && !isRight(found.get(), versions.get((int) number))) {
      throw new Broken("I1: a snapshot at version " + number + " that was not the newest at any moment of the call (" + (since - 1) + " to "
          + (versions.size() - 1) + ")");
    }
  }

  private boolean isRight(State state, Known known) {
    boolean right = state.topicId().equals(known.topicId()) && state.isDeleted() == known.deleted()
        && state.boundary() == known.number("boundary") && state.horizon() == known.number("horizon");
    if (!right || state.isDeleted()) {
      return right;
    }
    for (int p = 0; p < known.ends().length; p++) {
      right &= state.start(p) == known.starts()[p] && state.end(p) == known.ends()[p];
    }
    Homes.requireKnown(versions, state, known);
    return right && state.liveSegments() == known.live().size();
  }

  /** A write of these records returned; it began when the topic had been deleted {@code inLife} times. */
  void done(List<String> records, int inLife, Optional<Long> version) {
    for (String record : inLife == life() ? records : List.<String>of()) {
      if (now().counts.getOrDefault(record, 0) != 1) {
        throw new Broken("I1: " + record + " was reported done and is there " + now().counts.getOrDefault(record, 0) + " times");
      }
    }
    if (inLife == life()) {
      now().promised.addAll(records);
    }
    TreeSet<Long> in = new TreeSet<>(version.stream().toList());
    if (inLife == life()) {
      records.forEach(record -> in.add(now().committedIn.get(record)));
    }
    // Once its file was deleted, one of a writer that slept through the clean-up may have its name.
    in.stream().filter(this::isThere).map(Truth::file).filter(name -> !disk.isDurable(name)).forEach(name -> {
      throw new Broken("I1: " + name + " was reported done, and a power loss would take it");
    });
  }

  private boolean isThere(long version) {
    return version < versions.size() && disk.peekTag(file(version)).filter(versions.get((int) version).tag()::equals).isPresent();
  }

  /** A write of these records, which no other attempt writes, said that it is not done. */
  void notDone(List<String> records, int inLife) {
    if (inLife == life()) {
      now().notDone.add(records);
    }
  }

  void requireNotDone() {
    for (List<String> records : now().notDone) {
      if (records.stream().anyMatch(now().counts::containsKey)) {
        throw new Broken("I6: a write that was reported as not done is there: " + records);
      }
    }
  }

  /** After a power loss: the newest versions are gone if their names were not durable yet. */
  void losePower() {
    while (top() != null && disk.peekTag(file(top().version())).isEmpty()) {
      Known lost = versions.remove(versions.size() - 1);
      for (JsonNode added : lost.json().path("operation").asText().equals("write") ? lost.json().path("added") : JSON.createArrayNode()) {
        Segment segment = Replayed.segment(added);
        List<String> records = log.get(lost.topicId() + segment.partition());
        while (records.size() > segment.base()) {
          now().counts.remove(records.remove(records.size() - 1));
        }
      }
      if (lost.deleted()) {
        lives.pop();
      }
    }
    for (String record : now().promised) {
      if (!now().counts.containsKey(record)) {
        throw new Broken("I1: " + record + " was reported done, and the power loss took it");
      }
    }
  }
}
