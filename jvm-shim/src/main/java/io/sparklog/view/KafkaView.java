package io.sparklog.view;

import io.sparklog.log.Failures;
import io.sparklog.log.State;
import io.sparklog.log.Step;
import io.sparklog.log.TopicLog;
import io.sparklog.log.Version;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentGone;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LinkingStore;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Keeps the Kafka view of a topic: names and bytes that Kafka's tools and people look at. Any process may repeat any of it at any time,
 * so nothing of it is synced but the stamps, which change data files. FORMAT.md section 8.
 */
public final class KafkaView {
  /** A partition with more live segments is listed only when a checkpoint is due. */
  private static final int LISTED_MAX = 1000;

  /** At most this many rounds bring in what others have committed since the round before. */
  private static final int ROUNDS_MAX = 2;

  private final LinkingStore store;
  private final State state;
  private final SegmentView segmentView;
  private final List<Segment> missing = new ArrayList<>();
  private final List<SegmentGone> gone = new ArrayList<>();
  private final Failures failures;

  /** @param txn a random identity, for the names of temporary files */
  private KafkaView(LinkingStore store, State state, String txn) {
    this.store = store;
    this.state = state;
    this.segmentView = new SegmentView(store, state, txn);
    this.failures = new Failures(store.location(Names.topicFolder(state.topic())));
  }

  /**
   * Makes the view of the topic of {@code log} right for the newest state, and compares every byte.
   *
   * @param txn a random identity, for the names of temporary files
   * @return how many segments were brought in or repaired
   * @throws PartlogException VIEW_UNSUPPORTED if the store has no links; for what could not be repaired, once the rest is
   */
  public static int publish(TopicLog log, String txn) {
    if (!(log.store() instanceof LinkingStore store)) {
      throw PartlogException.of("VIEW_UNSUPPORTED", "topic", log.topic(), "root", log.store().root());
    }
    State before = log.latest().orElseThrow().forWriters();
    List<Set<String>> names;
    try {
      names = names(store, before, true);
    } catch (IOException e) {
      throw PartlogException.io(e, store.location(Names.topicFolder(log.topic())));
    }
    KafkaView view = new KafkaView(store, log.latest().orElseThrow(), txn);
    for (int partition = 0; partition < names.size(); partition++) {
      view.removeDead(partition, names.get(partition));
    }
    for (int partition = 0; partition < view.state.partitions(); partition++) {
      view.missing.addAll(view.viewed(partition));
    }
    int made = view.makeMissing(true);
    State now = log.latest().orElseThrow();
    view.removeBeyond(now);
    view.judgeGone(now);
    view.failures.throwFirst();
    Step.PUBLISH_DONE.reached();
    return made;
  }

  /**
   * Makes the view right after a commit, also of what others have left undone; a store without links has no view. It takes a file for right
   * by less than its bytes, and touches only changed files if this process knows the rest.
   *
   * @param own the versions that this process has just put, in order; none if another one has put the newest
   * @param all whether to look at the whole view, also at files that this process knows, and at partitions with very many segments. A
   *     process that slept may have put a file of a segment that was live before
   * @throws PartlogException for what could not be made, once the rest is
   */
  public static void keepUp(TopicLog log, List<Version> own, String txn, boolean all) throws IOException {
    if (!(log.store() instanceof LinkingStore store)) {
      return;
    }
    State state = log.latest().orElseThrow();
    List<Version> put = own;
    for (int round = 0; round < ROUNDS_MAX && (round == 0 && all || !isSame(state, log.hints(state).view())); round++) {
      State known = log.hints(state).view();
      KafkaView view;
      if (!all && follow(known, put, state)) {
        view = new KafkaView(store, state, txn);
        view.compare(known);
      } else {
        List<Set<String>> names = names(store, state, all);
        state = log.latest().orElseThrow();
        view = new KafkaView(store, state, txn);
        view.look(names, put, all || known == null);
      }
      view.makeMissing(false);
      State now = log.latest().orElseThrow();
      view.removeBeyond(now);
      view.judgeGone(now);
      boolean isNewest = isSame(now, view.state);
      // Damaged files would only fail again; the next commit tries anything else again.
      boolean isKnown = view.failures.all().stream().allMatch(failure -> isNewest && !failure.id().equals("IO"));
      log.hints(view.state).view(isKnown ? view.state : null);
      if (isNewest) {
        view.failures.throwFirst();
      }
      state = now;
      put = List.of();
    }
    Step.PUBLISH_DONE.reached();
  }

  private static boolean isSame(State state, State known) {
    return known != null && known.version() == state.version();
  }

  /** Whether only this process has put versions since {@code known}: then no other process changes the view. */
  private static boolean follow(State known, List<Version> own, State state) {
    if (known == null || own.isEmpty() || state.isDeleted()) {
      return false;
    }
    long first = own.get(0).version();
    return known.version() == first - 1 && state.version() == first + own.size() - 1
        && own.get(own.size() - 1).version() == state.version();
  }

  /** The names of segments in the folder of each partition; null for a folder that is not listed. */
  private static List<Set<String>> names(LinkingStore store, State state, boolean all) throws IOException {
    List<Set<String>> names = new ArrayList<>();
    for (int partition = 0; partition < state.partitions(); partition++) {
      boolean listed = all || state.isDeleted() || state.segments(partition).size() <= LISTED_MAX;
      names.add(listed ? names(store, state.topic(), partition) : null);
    }
    return names;
  }

  private static Set<String> names(LinkingStore store, String topic, int partition) throws IOException {
    return store.list(Names.viewFolder(topic, partition))
        .stream()
        .filter(name -> Names.viewBase(name).isPresent())
        .collect(Collectors.toSet());
  }

  private List<Segment> viewed(int partition) {
    return viewed(state, partition);
  }

  /** The segments of a partition that belong in the view. */
  private static List<Segment> viewed(State state, int partition) {
    if (state.isDeleted() || partition >= state.partitions() || !state.config().hasView()) {
      return List.of();
    }
    return state.segments(partition).stream().filter(state.config()::isInView).toList();
  }

  private void removeDead(int partition, Set<String> names) {
    Set<Long> bases = new HashSet<>();
    viewed(partition).forEach(segment -> bases.add(segment.base()));
    String folder = Names.viewFolder(state.topic(), partition);
    for (String name : names) {
      if (!bases.contains(Names.viewBase(name).getAsLong())) {
        attempt(() -> store.delete(folder + "/" + name));
      }
    }
    if (state.isDeleted() || !state.config().hasView()) {
      attempt(() -> store.deleteFolderIfEmpty(folder));
    }
  }

  /**
   * Removes files that do not belong in the view or are not right, and finds missing files.
   *
   * @param names the names before the read of {@link #state}
   * @param indexes whether to look at indexes too
   */
  private void look(List<Set<String>> names, List<Version> own, boolean indexes) {
    for (int partition = 0; partition < Math.max(names.size(), state.partitions()); partition++) {
      int p = partition;
      Set<String> there = p < names.size() ? names.get(p) : Set.of();
      if (there == null) {
        Set<Long> added = new HashSet<>();
        own.forEach(version -> version.added().stream().filter(segment -> segment.partition() == p).forEach(s -> added.add(s.base())));
        viewed(p).stream().filter(segment -> added.contains(segment.base())).forEach(missing::add);
        continue;
      }
      removeDead(p, there);
      for (Segment segment : viewed(p)) {
        attempt(() -> {
          if (!segmentView.seemsRight(segment, there, indexes)) {
            segmentView.remove(p, segment.base());
            missing.add(segment);
          }
        });
      }
    }
  }

  /** As {@link #look}, where the view is right as of {@code known}. */
  private void compare(State known) {
    for (int partition = 0; partition < state.partitions(); partition++) {
      List<Segment> before = viewed(known, partition);
      List<Segment> after = viewed(partition);
      int same = 0;
      while (same < before.size() && same < after.size() && isSame(before.get(same), after.get(same))) {
        same++;
      }
      Map<Long, Segment> gone = byBase(before.subList(same, before.size()));
      for (Segment segment : after.subList(same, after.size())) {
        if (isSame(gone.get(segment.base()), segment)) {
          gone.remove(segment.base());
        } else {
          missing.add(segment);
        }
      }
      gone.values().forEach(segment -> attempt(() -> segmentView.remove(segment.partition(), segment.base())));
    }
  }

  private static Map<Long, Segment> byBase(List<Segment> segments) {
    Map<Long, Segment> byBase = new HashMap<>();
    segments.forEach(segment -> byBase.put(segment.base(), segment));
    return byBase;
  }

  private static boolean isSame(Segment one, Segment other) {
    return one == other
        || one != null && one.base() == other.base() && one.position() == other.position() && one.file().equals(other.file());
  }

  /** @param compare whether most files probably exist, so that they are compared first. @return how many segments were changed */
  private int makeMissing(boolean compare) {
    int[] made = {0};
    for (Segment segment : missing) {
      attempt(() -> made[0] += segmentView.make(segment, compare) ? 1 : 0);
    }
    return made[0];
  }

  /** One failure does not stop the rest. */
  private void attempt(Failures.Task part) {
    failures.attempt(() -> {
      try {
        part.run();
      } catch (SegmentGone e) {
        gone.add(e);
      }
    });
  }

  /** A topic that has begun {@code now} may have fewer partitions than the topic of this view: no other program looks beyond them. */
  private void removeBeyond(State now) {
    for (int partition = now.partitions(); partition < state.partitions(); partition++) {
      int p = partition;
      String folder = Names.viewFolder(state.topic(), p);
      attempt(() -> {
        for (String name : names(store, state.topic(), p)) {
          store.delete(folder + "/" + name);
        }
        store.deleteFolderIfEmpty(folder);
      });
    }
  }

  /** A data file that is gone is a failure if its segment is live {@code now} too. Otherwise a later version has removed it. */
  private void judgeGone(State now) {
    for (SegmentGone e : gone) {
      if (viewed(now, e.segment().partition()).stream().anyMatch(segment -> isSame(segment, e.segment()))) {
        failures.note(e.missing());
      }
    }
  }
}
