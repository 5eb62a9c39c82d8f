package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Vacuum;
import io.sparklog.kit.FaultyServer;
import io.sparklog.kit.Writes;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.log.Version;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.statistics.IOStatisticsSupport;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The requests to a real S3 server, which a proxy counts and answers in its place; {@code make test-stores} starts both. */
@EnabledIfSystemProperty(named = "stores.s3proxy", matches = ".+")
@Timeout(300)
final class S3RequestsTest {
  private static final String FILE = StoreUnderTest.FILE;
  private static final String VERSION = "_partlog/t/[0-9]{20}\\.json$";

  private final StoreRef ref = StoreSettings.newRoot("stores.s3proxy", Map.of());
  private final FaultyServer server = new FaultyServer(ref.settings().get("fs.s3a.endpoint"));
  private final Random random = new Random(28);
  private final LogStore store = S3Store.open(ref);
  private final Root root = new Root(store);

  @BeforeEach
  void begin() throws Exception {
    server.begin(List.of());
  }

  private TopicLog log() {
    return root.topic("t");
  }

  private static TopicPlan plan(Root driver) {
    return TopicPlan.of("t", driver.topic("t").latest(), Writes.config());
  }

  private Optional<Version> commit(Root driver, Writes writes) throws IOException {
    TopicPlan plan = plan(driver);
    String txn = Names.identity(random);
    return commit(driver, plan, txn, writes.reports(store, plan, txn));
  }

  private Optional<Version> commit(Root driver, TopicPlan plan, String txn, List<TopicReport> reports) {
    return new TopicCommits(driver, txn, topic -> Once.NEVER, Clock.systemUTC(), random).commit(plan, reports).version();
  }

  private void commitSmall(Root driver) throws IOException {
    assertTrue(commit(driver, Writes.of("x", 2, 3, 0)).isPresent());
  }

  @Test
  void aCommitOfWhatTravelled() throws Exception {
    for (int n = 0; n < 3; n++) {
      commitSmall(root);
    }
    for (int n = 0; n < 3; n++) {
      TopicPlan plan = plan(root);
      String txn = Names.identity(random);
      List<TopicReport> reports = Writes.of("x", 2, 3, 0).reports(store, plan, txn);
      server.begin(List.of());
      assertTrue(commit(root, plan, txn, reports).isPresent());
      assertEquals(Map.of("PUT", 2, "HEAD", 2), server.counted(), () -> "commit " + plan.plannedVersion());
    }
    assertEquals(5, new Root(store).topic("t").latest().orElseThrow().version());
  }

  /** A process does not read what it has put. It looks at the version that it extends before its put and after it. */
  @Test
  void aCommitWithItsPlan() throws Exception {
    commitSmall(root);
    commitSmall(root);
    server.begin(List.of());
    commitSmall(root);
    assertEquals(Map.of("PUT", 2, "GET", 1, "HEAD", 3), server.counted());
  }

  @Test
  void aCommitOfTaskFiles() throws Exception {
    commitSmall(root);
    TopicPlan plan = plan(root);
    String txn = Names.identity(random);
    server.begin(List.of());
    List<TopicReport> reports = Writes.of("x", 3, 20_000, 0).reports(store, plan, txn);
    assertEquals(Map.of("PUT", 3), server.counted());
    assertTrue(commit(root, plan, txn, reports).isPresent());
    assertEquals(Map.of("PUT", 3 + 1, "LIST", 1, "HEAD", 2), server.counted());
  }

  @Test
  void anIdlePoll() throws Exception {
    commitSmall(root);
    log().latest();
    for (int poll = 0; poll < 3; poll++) {
      server.begin(List.of());
      log().latest();
      assertEquals(Map.of("GET", 1, "HEAD", 1), server.counted());
      assertEquals(404, server.requests().get(0).told());
    }
  }

  /** One GET for each, and those of an idle poll. */
  @Test
  void versionsThatAreRead() throws Exception {
    commitSmall(root);
    Root reader = new Root(store);
    long begun = reader.topic("t").latest().orElseThrow().version();
    for (int n = 0; n < 3; n++) {
      commitSmall(root);
    }
    server.begin(List.of());
    assertEquals(begun + 3, reader.topic("t").latest().orElseThrow().version());
    assertEquals(Map.of("GET", 3 + 1, "HEAD", 1), server.counted());
  }

  /** Where many versions were read, the next look is at a newer one: the clean-up takes the old ones. */
  @Test
  void aReaderThatFollowsLooksAtNewerVersions() throws Exception {
    commitSmall(root);
    Root reader = new Root(store);
    reader.topic("t").latest();
    for (int n = 0; n < 30; n++) {
      commitSmall(root);
    }
    reader.topic("t").latest();
    server.begin(List.of());
    reader.topic("t").latest();
    assertEquals(Map.of("GET", 1, "HEAD", 1), server.counted());
    FaultyServer.Request look = server.requests().stream().filter(request -> request.method().equals("HEAD")).findFirst().orElseThrow();
    assertTrue(look.key().endsWith("00000000000000000030.json"), look.key());
  }

  /** A listing, the checkpoint, the absent next version, and then the version of the checkpoint, which is seen to be still there. */
  @Test
  void openingATopicAtItsCheckpoint() throws Exception {
    for (int n = 0; n < 3; n++) {
      commitSmall(root);
    }
    State state = log().latest().orElseThrow();
    log().writeCheckpoint(state, Names.identity(random));
    server.begin(List.of());
    assertEquals(state.version(), new Root(store).topic("t").latest().orElseThrow().version());
    assertEquals(Map.of("LIST", 1, "GET", 3), server.counted());
    commitSmall(root);
    commitSmall(root);
    server.begin(List.of());
    assertEquals(state.version() + 2, new Root(store).topic("t").latest().orElseThrow().version());
    assertEquals(Map.of("LIST", 1, "GET", 3 + 2), server.counted());
  }

  /** The listed version is read. The second listing has no later version, so the reader does not look for one (FORMAT.md section K.1). */
  @Test
  void openingATopicWithoutACheckpoint() throws Exception {
    commitSmall(root);
    server.begin(List.of());
    assertEquals(0, new Root(store).topic("t").latest().orElseThrow().version());
    assertEquals(Map.of("LIST", 2, "GET", 1), server.counted());
  }

  /** Where a look costs a request, a vacuum lists the data folders, and each of them once, however many files they have. */
  @Test
  void aVacuumListsAndDoesNotLook() throws Exception {
    for (int n = 0; n < 3; n++) {
      commit(root, Writes.of("x", 3, 20_000, 0));
    }
    TopicPlan plan = plan(root);
    Writes.of("dead", 4, 20_000, 0).reports(store, plan, Names.identity(random));
    Clock later = Clock.offset(Clock.systemUTC(), Duration.ofDays(8));
    Vacuum vacuum = new Vacuum(new TopicWork(log(), later, random));
    server.begin(List.of());
    Vacuum.Vacuumed found = vacuum.run(Duration.ofDays(7), true);
    assertEquals(4, found.files().size());
    assertTrue(found.bytes() > 4 * 20_000, found.toString());
    Map<String, Integer> counted = server.counted();
    assertEquals(1 + 4 + 2, counted.get("LIST"), () -> "the data folders, each of them, and tmp/, which is not there: " + asked());
    assertEquals(2, counted.get("HEAD"), () -> "the newest version, and tmp/: " + asked());
    assertEquals(4, vacuum.run(Duration.ofDays(7), false).files().size());
    assertEquals(List.of(), vacuum.run(Duration.ofDays(7), true).files());
    State state = root.state("t");
    assertEquals(3 * 3 * 20_000, IntStream.range(0, state.partitions()).mapToLong(state::end).sum());
  }

  @Test
  void manyFilesAreDeletedByOneRequest() throws Exception {
    List<String> names = new ArrayList<>();
    for (int n = 0; n < 1000; n++) {
      names.add("_partlog/t/data/f/" + n);
    }
    put(names.get(7), "one");
    server.begin(List.of());
    store.deleteAll(names, () -> {});
    assertEquals(Map.of("POST", 1), server.counted());
    assertFalse(store.exists(names.get(7)));
  }

  @Test
  void theSharedFileSystemIsNotAsked() throws Exception {
    FileSystem shared = FileSystem.get(new Path(ref.root()).toUri(), HadoopSettings.configuration(ref.settings()));
    Map<String, Long> before = Map.copyOf(IOStatisticsSupport.retrieveIOStatistics(shared).counters());
    commitSmall(root);
    log().latest();
    assertEquals(before, IOStatisticsSupport.retrieveIOStatistics(shared).counters());
  }

  private void put(String name, String content) throws IOException {
    store.putIfAbsent(name, "_partlog/t/tmp/x", content.getBytes(StandardCharsets.UTF_8), PutObserver.NONE);
  }

  @ParameterizedTest
  @ValueSource(ints = {400, 403, 404, 409, 501})
  void aRefusalEndsThePut(int status) throws Exception {
    server.begin(List.of(FaultyServer.answer(status, FILE, 1)));
    IOException e = assertThrows(IOException.class, () -> put(FILE, "one"));
    assertFalse(e instanceof NoAnswerException || e instanceof FileAlreadyExistsException, e.toString());
    assertEquals(1, server.counted().get("PUT"));
    if (status == 403) {
      assertInstanceOf(AccessDeniedException.class, e);
    }
    put(FILE, "two");
    assertThrows(FileAlreadyExistsException.class, () -> put(FILE, "three"));
  }

  /** By the SDK, or by S3A. */
  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void aRefusalOfARepeatedRequestTellsNothingOfTheFirst(int attempts) throws Exception {
    S3Store place = StoreSettings.impatient(ref, attempts, 3);
    server.begin(List.of(FaultyServer.cut(FILE, 1), FaultyServer.answer(403, FILE, 9)));
    assertThrows(NoAnswerException.class, () -> place.putIfAbsent(FILE, "x", new byte[9], PutObserver.NONE));
  }

  @ParameterizedTest
  @ValueSource(ints = {408, 500, 503})
  void anAnswerThatProvesNothingIsNone(int status) throws Exception {
    S3Store place = StoreSettings.impatient(ref, 1, 1);
    server.begin(List.of(FaultyServer.answer(status, FILE, 99)));
    assertThrows(NoAnswerException.class, () -> place.putIfAbsent(FILE, "x", new byte[9], PutObserver.NONE));
  }

  /** The client repeats the put, and is told that the name is taken: by that very put, as reading it back shows. */
  @Test
  void aCommitWhoseAnswerIsLostIsReadBack() throws Exception {
    commitSmall(root);
    server.begin(List.of(FaultyServer.lose(VERSION, 1)));
    assertEquals(1, commit(root, Writes.of("x", 2, 3, 0)).orElseThrow().version());
    server.begin(List.of());
    assertEquals(1, new Root(store).topic("t").latest().orElseThrow().version());
  }

  /** The checks of the contract for puts that have no answer, on a server that gets one late. */
  private static final class LateContract extends LogStoreContract {
    private final LogStore place;
    private final FaultyServer server;
    private boolean held;

    private LateContract(LogStore place, FaultyServer server) throws IOException {
      this.place = place;
      this.server = server;
      begin();
    }

    @Override
    LogStore newStore() {
      return place;
    }

    @Override
    Optional<Executable> holdBack() {
      held = true;
      return Optional.of(() -> {
        while (server.requests().stream().noneMatch(request -> request.told() == 0 && request.done() != 0)) {
          Thread.sleep(20);
        }
      });
    }

    /** One that is held back comes late, and is cut each time that the client repeats it. */
    @Override
    void put(String name, String content) throws IOException {
      try {
        if (held) {
          server.begin(List.of(FaultyServer.late(name, 2), FaultyServer.cut(name, 99)));
        }
        super.put(name, content);
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      } finally {
        heal();
      }
    }

    private void heal() throws IOException {
      held = false;
      try {
        server.heal();
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  private List<FaultyServer.Request> asked() {
    try {
      return server.requests();
    } catch (IOException | InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private LateContract late(LogStore place) throws IOException {
    place.delete(FILE);
    return new LateContract(place, server);
  }

  @Test
  void aLatePutKeepsTheContract() throws Throwable {
    late(StoreSettings.impatient(ref, 1, 1)).aPutWithoutAnAnswerTakesEffectLater();
    late(StoreSettings.impatient(ref, 1, 1)).aPutThatTakesEffectLaterNeverReplaces();
  }

  /** A put without an answer does not count as one that failed. */
  @Test
  void aStoreThatTakesNoAnswerForAFailureIsFound() throws Throwable {
    LogStore hasty = FaultyStore.of(StoreSettings.impatient(ref, 1, 1)).answer("putIfAbsent", (real, with) -> {
      try {
        real.putIfAbsent((String) with[0], (String) with[1], (byte[]) with[2], (PutObserver) with[3]);
        return null;
      } catch (NoAnswerException e) {
        throw new IOException("it failed");
      }
    }).withoutLinks();
    assertThrows(AssertionError.class, () -> late(hasty).aPutWithoutAnAnswerTakesEffectLater());
  }

  @Test
  void aCommitThatMayNotPutIsNotDoneAndSaysWhy() throws Exception {
    commitSmall(root);
    server.begin(List.of(FaultyServer.answer(403, VERSION, 99)));
    PartlogException e = assertThrows(PartlogException.class, () -> commit(root, Writes.of("x", 2, 3, 0)));
    assertEquals("COMMIT_FAILED", e.id());
    assertTrue(e.getMessage().contains("AccessDenied"), e.getMessage());
  }
}
