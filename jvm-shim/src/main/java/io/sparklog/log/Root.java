package io.sparklog.log;

import io.sparklog.format.OffsetIndex;
import io.sparklog.segment.Extent;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFile;
import io.sparklog.segment.SegmentFiles;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Requests;
import io.sparklog.storage.StoreRef;
import io.sparklog.storage.Stores;
import java.io.IOException;
import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.nio.file.AccessDeniedException;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import java.util.function.Predicate;
import java.util.function.Supplier;

/**
 * A root: the topics under it. FORMAT.md section 1.
 *
 * <p>A JVM has one for each place, so that sources, sinks, tasks and the writes of a foreachBatch load a topic once: {@link #of}. One that
 * nothing uses is dropped when memory runs short.
 */
public final class Root implements ReadableTopics {
  private static final List<String> BROKER_FILES = List.of("meta.properties", "recovery-point-offset-checkpoint",
      "replication-offset-checkpoint", "log-start-offset-checkpoint", "cleaner-offset-checkpoint");

  private static final long RECENT_MS = 1000;
  private static final int INDEX_BYTES_MAX = 64 << 20;
  private static final int SORT_LEAST = 1000;

  /** The roots of this JVM, by the identity of their stores. */
  private static final Map<Object, SoftReference<Root>> OPEN = new HashMap<>();

  private final LogStore store;
  private final Requests requests;
  private final Pace pace;
  /** Guarded by this, as the next two fields are. */
  private final Map<String, TopicLog> topics = new HashMap<>();

  /** The logs of names under which no topic was found. Clients of a server may ask for any name, so each is kept while it is used. */
  private final Map<String, WeakReference<TopicLog>> absent = new HashMap<>();

  /** With this number of topics, the names without a topic are sorted out. */
  private int sortAt = SORT_LEAST;

  /** Guards the fields below. Not this object, since all queries of the JVM need that, and a listing may take long. */
  private final Object listing = new Object();

  /** The topics of the last listing by name, and its time; see {@link #recentTopics}. */
  private SortedMap<String, TopicFolder> recent = Collections.emptySortedMap();
  private long recentMs = Long.MIN_VALUE;
  private volatile boolean prepared;

  /** In a store without folders: the time at which files below {@code _partlog/} were last seen. */
  private volatile long seenMs = Long.MIN_VALUE;

  /** The answer that the names in a folder give. FORMAT.md section 1. */
  private enum TopicFolder {
    NOTHING, DELETED, TOPIC
  }

  /** A root of its own, which knows nothing of others of the same place. */
  public Root(LogStore store) {
    this(store, Pace.PRODUCTION);
  }

  /** As the other, at another pace. */
  public Root(LogStore store, Pace pace) {
    this.store = store;
    this.requests = store.requests();
    this.pace = pace;
  }

  /**
   * The root at a path, which need not exist yet.
   *
   * @throws PartlogException see {@link Stores#open}
   */
  public static Root of(String path) {
    return of(Stores.open(path));
  }

  /** As the other. @param settings of Hadoop, asked for only where the root is not on a disk */
  public static Root of(String path, Supplier<? extends Iterable<Map.Entry<String, String>>> settings) {
    return of(Stores.open(path, settings));
  }

  /** The root that a store keeps. */
  static Root of(LogStore store) {
    synchronized (OPEN) {
      SoftReference<Root> known = OPEN.get(store.identity());
      Root root = known == null ? null : known.get();
      if (root == null) {
        OPEN.values().removeIf(reference -> reference.get() == null);
        root = new Root(store);
        OPEN.put(store.identity(), new SoftReference<>(root));
      }
      return root;
    }
  }

  /** The reference that a task is sent. */
  private record RootReference(StoreRef store) implements Reference {
    @Override
    public ReadableTopics open() {
      return of(Stores.open(store));
    }
  }

  @Override
  public Reference reference() {
    return new RootReference(store.ref());
  }

  @Override
  public String location() {
    return store.root();
  }

  @Override
  public boolean isRemote() {
    return store.isRemote();
  }

  public LogStore store() {
    return store;
  }

  /**
   * The log of a topic, which need not exist yet.
   *
   * @throws PartlogException TOPIC_NAME_ILLEGAL
   */
  public synchronized TopicLog topic(String name) {
    ReadableTopics.requireLegal(name);
    TopicLog known = topics.get(name);
    if (known != null) {
      return known;
    }
    WeakReference<TopicLog> kept = absent.remove(name);
    TopicLog log = kept == null ? null : kept.get();
    log = log == null ? new TopicLog(store, name, pace) : log;
    topics.put(name, log);
    if (topics.size() > sortAt) {
      sortOut();
    }
    return log;
  }

  private void sortOut() {
    absent.values().removeIf(kept -> kept.get() == null);
    topics.forEach((name, log) -> {
      if (!log.wasFound()) {
        absent.put(name, new WeakReference<>(log));
      }
    });
    topics.values().removeIf(log -> !log.wasFound());
    sortAt = Math.max(SORT_LEAST, 2 * topics.size());
  }

  @Override
  public List<String> topics() {
    return existing(list(name -> false));
  }

  @Override
  public List<String> candidates() {
    return ask(Names.FOLDER, this::folders);
  }

  /** The folders of {@code _partlog/} that have the name of a topic. */
  private List<String> folders() throws IOException {
    List<String> names = store.list(Names.FOLDER);
    if (!names.isEmpty()) {
      seenMs = pace.clock().millis();
    }
    return names.stream().filter(name -> Names.illegalTopic(name).isEmpty()).sorted().toList();
  }

  /** The names of {@link #topics} and of deleted topics: all that have a {@link TopicLog#latest}. */
  public List<String> names() {
    return List.copyOf(list(name -> false).keySet());
  }

  /** The folder of a topic that was listed or read is not looked into again, unless its log was found to be deleted. */
  @Override
  public List<String> recentTopics(Clock clock) {
    return existing(recentlyListed(clock));
  }

  /** As {@link #names}, at most a second ago. */
  public List<String> recentNames(Clock clock) {
    return List.copyOf(recentlyListed(clock).keySet());
  }

  private static List<String> existing(SortedMap<String, TopicFolder> listed) {
    return listed.entrySet().stream().filter(found -> found.getValue() == TopicFolder.TOPIC).map(Map.Entry::getKey).toList();
  }

  /** A topic was created in this JVM: the next {@link #recentTopics} has it, also within a second. */
  public void listAgain() {
    synchronized (listing) {
      recentMs = Long.MIN_VALUE;
    }
  }

  private SortedMap<String, TopicFolder> recentlyListed(Clock clock) {
    synchronized (listing) {
      long now = clock.millis();
      if (now < recentMs || now - recentMs >= RECENT_MS || recentMs == Long.MIN_VALUE) {
        SortedMap<String, TopicFolder> before = recent;
        recent = list(name -> wasThere(name, before));
        recentMs = now;
      }
      return recent;
    }
  }

  /**
   * The topics that are there now, by name.
   *
   * @param isThere whether a name is taken for a topic without a look into its folder
   */
  private SortedMap<String, TopicFolder> list(Predicate<String> isThere) {
    TreeMap<String, TopicFolder> now = new TreeMap<>();
    List<String> unknown = new ArrayList<>();
    for (String name : candidates()) {
      if (isThere.test(name)) {
        now.put(name, TopicFolder.TOPIC);
      } else {
        unknown.add(name);
      }
    }
    each(unknown, this::look, (name, found) -> {
      if (found != TopicFolder.NOTHING) {
        now.put(name, found);
      }
    });
    return now;
  }

  /** Asks about names at once, and takes the answers in their order. @throws PartlogException IO */
  private <T> void each(Collection<String> names, Requests.About<String, T> question, BiConsumer<String, T> taker) {
    try {
      requests.each(names, question, (name, answer) -> {
        taker.accept(name, answer);
        return true;
      });
    } catch (IOException e) {
      throw PartlogException.io(e, store.location(Names.FOLDER));
    }
  }

  private synchronized boolean wasThere(String name, SortedMap<String, TopicFolder> before) {
    TopicLog log = topics.get(name);
    return log == null || !log.wasFound() ? before.get(name) == TopicFolder.TOPIC : !log.wasDeleted();
  }

  private TopicFolder look(String name) throws IOException {
    Collection<String> files = new VersionFiles(store, name, 0).list().names();
    long committed = Names.newest(files);
    long deleted = files.stream().flatMapToLong(file -> Names.deletedVersion(file).stream()).max().orElse(-1);
    return committed < 0 ? TopicFolder.NOTHING : committed > deleted ? TopicFolder.TOPIC : TopicFolder.DELETED;
  }

  /** The newest state of a topic that must exist. @throws PartlogException TOPIC_NOT_FOUND, which lists the existing topics */
  public State state(String topic) {
    return topic(topic).newest().orElseThrow(() -> notFound(topic));
  }

  /** TOPIC_NOT_FOUND, of a caller that has a log and no root. */
  public static PartlogException notFound(TopicLog log) {
    return new Root(log.store()).notFound(log.topic());
  }

  @Override
  public Optional<State> newest(String topic) {
    return topic(topic).newest();
  }

  @Override
  public boolean watch(String topic, Runnable task) {
    return store.watch(Names.topicFolder(topic), task);
  }

  @Override
  public Map<String, State> newest(Collection<String> names) {
    Map<String, State> states = new HashMap<>();
    each(names, this::newest, (name, found) -> found.ifPresent(state -> states.put(name, state)));
    return states;
  }

  /**
   * As {@link #newest(Collection)}, but a topic that cannot be read does not fail the others.
   *
   * @param taker given each topic that can be read, with an empty state if it does not exist
   * @param unreadable given each other topic
   */
  public void readable(Collection<String> names, BiConsumer<String, Optional<State>> taker,
      BiConsumer<String, PartlogException> unreadable) {
    each(names, this::readable, (name, found) -> {
      if (found.failure == null) {
        taker.accept(name, found.state);
      } else {
        unreadable.accept(name, found.failure);
      }
    });
  }

  private record Readable(Optional<State> state, PartlogException failure) {}

  private Readable readable(String name) {
    try {
      return new Readable(newest(name), null);
    } catch (PartlogException e) {
      return new Readable(null, e);
    }
  }

  @Override
  public SegmentFile open(String topic, Segment segment) throws IOException {
    return SegmentFile.open(store, topic, segment);
  }

  @Override
  public SegmentFiles open(String topic, List<Extent> extents) {
    return SegmentFiles.ahead(store, topic, extents);
  }

  /** The index of the segment in the Kafka view. */
  @Override
  public Optional<OffsetIndex> index(String topic, Segment segment) {
    if (store.isRemote()) {
      return Optional.empty();
    }
    try {
      String name = Names.viewFolder(topic, segment.partition()) + "/" + Names.viewFile(segment.base(), "index");
      return Optional.of(new OffsetIndex(store.read(name, INDEX_BYTES_MAX), segment.base()));
    } catch (IOException absent) {
      return Optional.empty();
    }
  }

  /**
   * Whether a read may begin.
   *
   * @throws PartlogException ROOT_NOT_FOUND, ROOT_NOT_A_DIRECTORY; for an existing directory that is not a root, ROOT_WITHOUT_LOG,
   *     PARTITION_DIRECTORY, LOG_DIRECTORY, BROKER_DIRECTORY
   */
  @Override
  public void requireReadable() {
    if (isRootWithoutFolders()) {
      return;
    }
    requireDirectory();
    if (!isDirectory()) {
      throw PartlogException.of("ROOT_NOT_FOUND", "root", store.root());
    }
    // Otherwise any directory would pass for a root without topics, and be read as empty.
    if (!exists(Names.FOLDER)) {
      requireNotOfABroker("reading it is not supported yet");
      requireNotOfARoot();
      throw PartlogException.of("ROOT_WITHOUT_LOG", "root", store.root());
    }
  }

  /**
   * Whether a write may begin; the first write creates the root.
   *
   * @throws PartlogException ROOT_NOT_A_DIRECTORY, BROKER_DIRECTORY, PARTITION_DIRECTORY, LOG_DIRECTORY, ROOT_IN_ROOT
   */
  public void requireWritable() {
    if (isRootWithoutFolders()) {
      return;
    }
    // In a store without folders, the root was just seen to be new: the looks at it and above it are made at once.
    Requests looks = store.hasFolders() ? Requests.IN_TURN : requests;
    try (Requests.Pending<Optional<String>> above = looks.begin(() -> store.above(Names.FOLDER))) {
      requireDirectory();
      requireNotOfABroker("partlog never writes to it");
      if (!store.hasFolders() || !exists(Names.FOLDER)) {
        requireNotOfARoot();
        requireNotBelow(above.answer());
      }
    } catch (IOException e) {
      throw PartlogException.io(e, store.root());
    }
  }

  private void requireNotBelow(Optional<String> root) {
    root.ifPresent(above -> {
      String example = above + "-" + store.root().substring(store.root().lastIndexOf('/') + 1);
      throw PartlogException.of("ROOT_IN_ROOT", "root", store.root(), "above", above, "example", example);
    });
  }

  /**
   * In a store without folders, a file in {@code _partlog/} proves all that is to be proved, and each further look costs requests. A
   * statement asks more than once: an answer holds for a second, like an answer of {@link #recentTopics}.
   */
  private boolean isRootWithoutFolders() {
    if (store.hasFolders()) {
      return false;
    }
    long now = pace.clock().millis();
    if (now >= seenMs && now - RECENT_MS < seenMs) {
      return true;
    }
    boolean exists = ask(Names.FOLDER, () -> store.holdsFiles(Names.FOLDER));
    seenMs = exists ? now : Long.MIN_VALUE;
    return exists;
  }

  private void requireNotOfABroker(String limit) {
    if (store.isRemote()) {
      return;
    }
    for (String file : BROKER_FILES) {
      if (exists(file) || store.existsBeside(file)) {
        throw PartlogException.of("BROKER_DIRECTORY", "root", store.root(), "file", exists(file) ? file : "../" + file, "limit", limit);
      }
    }
  }

  private void requireNotOfARoot() {
    int slash = store.root().lastIndexOf('/');
    String folder = store.root().substring(slash + 1);
    String topic = folder.substring(0, Math.max(0, folder.lastIndexOf('-')));
    OptionalInt partition = Names.viewPartition(topic, folder);
    if (partition.isPresent() && Names.illegalTopic(topic).isEmpty() && store.existsBeside(Names.topicFolder(topic))) {
      String above = store.root().substring(0, slash);
      throw PartlogException.of("PARTITION_DIRECTORY", "root", store.root(), "partition", partition.getAsInt(), "topic", topic, "above",
          above);
    }
    int within = (store.root() + "/").lastIndexOf("/" + Names.FOLDER + "/");
    if (within >= 0) {
      throw PartlogException.of("LOG_DIRECTORY", "root", store.root(), "above", store.root().substring(0, Math.max(within, 1)));
    }
  }

  /** Creates the root, before any task needs it. @throws PartlogException ROOT_NOT_WRITABLE, STORE_UNSAFE */
  public void prepare() {
    try {
      store.probe(Names.PROBE);
      store.createFolder(Names.FOLDER);
      prepared = true;
    } catch (IOException e) {
      String cause = e instanceof AccessDeniedException ? "access is denied" : e.toString();
      throw PartlogException.caused(e, "ROOT_NOT_WRITABLE", "root", store.root(), "cause", cause);
    }
  }

  /** Whether {@link #prepare} was done and the root is still there: then a running query need not look again in each epoch. */
  public boolean isPrepared() {
    return prepared && (!store.hasFolders() || exists(Names.FOLDER));
  }

  private void requireDirectory() {
    // In this order: another writer may create the root between the two checks.
    if (isSeen(() -> store.exists("")) && !isDirectory()) {
      throw PartlogException.of("ROOT_NOT_A_DIRECTORY", "root", store.root());
    }
  }

  private boolean isDirectory() {
    return isSeen(store::rootExists);
  }

  /**
   * Whether there is something at the root itself. In a store without folders, a policy that allows all names below the root may refuse a
   * look at the root's own name. Then nothing that matters is there.
   */
  private boolean isSeen(Requests.Request<Boolean> check) {
    return ask("", () -> {
      try {
        return check.make();
      } catch (AccessDeniedException e) {
        if (store.hasFolders()) {
          throw e;
        }
        return false;
      }
    });
  }

  private boolean exists(String name) {
    return ask(name, () -> store.exists(name));
  }

  /** The answer to a question about {@code name}. @throws PartlogException IO */
  private <T> T ask(String name, Requests.Request<T> question) {
    try {
      return question.make();
    } catch (IOException e) {
      throw PartlogException.io(e, name.isEmpty() ? store.root() : store.location(name));
    }
  }
}
