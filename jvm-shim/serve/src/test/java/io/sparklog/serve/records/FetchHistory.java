package io.sparklog.serve.records;

import io.sparklog.kit.MillisClock;
import io.sparklog.serve.protocol.ClientRequest;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.FetchSessionIdNotFoundException;
import org.apache.kafka.common.errors.FetchSessionTopicIdException;
import org.apache.kafka.common.errors.InvalidFetchSessionEpochException;
import org.apache.kafka.common.message.FetchRequestData.FetchPartition;
import org.apache.kafka.common.message.FetchRequestData.FetchTopic;
import org.apache.kafka.common.message.FetchRequestData.ForgottenTopic;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData.PartitionData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.FetchMetadata;

/**
 * Clients with fetch sessions, in an order that a seed chooses. Each client notes the partitions of its requests, and the offsets of the
 * answers. A session must agree with its client in any order of requests of other clients.
 */
final class FetchHistory {
  private static final int ACTS = 400;
  private static final int CLIENTS = 5;
  private static final int SLOTS = 3;
  private static final int PARTITIONS_MAX = 12;
  private static final int TOPICS = 3;
  private static final int PARTITIONS = 4;
  private static final long KEPT_MS = 120_000;
  private static final List<Uuid> IDS = List.of(new Uuid(1, 1), new Uuid(1, 2), new Uuid(1, 3));

  private final Random random;
  private long nowMs = 1_000_000;
  private final FetchSessions sessions;
  /** The partitions of all topics: topic × {@link #PARTITIONS} + partition. */
  private final Told[] truth = new Told[TOPICS * PARTITIONS];
  private final List<Client> clients = new ArrayList<>();
  private String act = "the start";

  /** A partition as an answer tells it. */
  private record Told(long start, long end, boolean isFault) {}

  /** A request that is not answered. */
  private record ClientRequest(FetchSession session, boolean isChange, List<FetchSession.PartitionName> places) {}

  private static final class Wrong extends RuntimeException {
    private static final long serialVersionUID = 1;

    Wrong(String message) {
      super(message);
    }
  }

  private final class Client {
    private final boolean byId = random.nextBoolean();
    private int id;
    private int epoch;
    private long begunMs;
    private long usedMs;
    private boolean mayBeGone;
    /** The offset of each partition, in the order in which the partitions must be read. */
    private final Map<FetchSession.PartitionName, Long> wanted = new LinkedHashMap<>();
    private final Map<FetchSession.PartitionName, Told> known = new HashMap<>();
    private ClientRequest asked;

    private FetchSession.PartitionName place(int number) {
      int topic = number / PARTITIONS;
      return new FetchSession.PartitionName(byId ? "" : "t" + topic, byId ? IDS.get(topic) : Uuid.ZERO_UUID, number % PARTITIONS);
    }

    private Told truth(FetchSession.PartitionName place) {
      int topic = byId ? IDS.indexOf(place.id()) : place.topic().charAt(1) - '0';
      return truth[topic * PARTITIONS + place.partition()];
    }

    /** A request for some partitions. The same partition may be there twice. */
    private FetchRequestData request(int atEpoch, int count) {
      FetchRequestData request = new FetchRequestData().setSessionId(id).setSessionEpoch(atEpoch);
      for (int i = 0; i < count; i++) {
        FetchSession.PartitionName place = place(random.nextInt(truth.length));
        FetchPartition partition = new FetchPartition().setPartition(place.partition()).setFetchOffset(random.nextInt(50));
        request.topics().add(new FetchTopic().setTopic(place.topic()).setTopicId(place.id()).setPartitions(List.of(partition)));
      }
      return request;
    }

    private void note(FetchRequestData request) {
      request.topics()
          .forEach(topic -> topic.partitions()
              .forEach(each -> wanted.put(new FetchSession.PartitionName(topic.topic(), topic.topicId(), each.partition()),
                  each.fetchOffset())));
      request.forgottenTopicsData().forEach(topic -> topic.partitions().forEach(each -> {
        FetchSession.PartitionName place = new FetchSession.PartitionName(topic.topic(), topic.topicId(), each);
        wanted.remove(place);
        known.remove(place);
      }));
    }

    private void end() {
      id = 0;
      asked = null;
      wanted.clear();
      known.clear();
      mayBeGone = false;
    }

    private void begin() {
      FetchRequestData request = request(FetchMetadata.INITIAL_EPOCH, 1 + random.nextInt(8));
      end();
      note(request);
      int size = request.topics().size(); // A partition counts as often as the request has it.
      int before = sessions.size();
      FetchSession session = sessions.of(request, byId);
      if (session == null || sessions.size() <= before) { // Others may be gone for it.
        clients.stream()
            .filter(other -> other != this)
            .filter(other -> other.usedMs <= nowMs - KEPT_MS || other.begunMs <= nowMs - KEPT_MS && other.wanted.size() < size)
            .forEach(other -> other.mayBeGone = true);
      }
      if (session == null) {
        require(sessions.size() == SLOTS || sessions.partitions() + size > PARTITIONS_MAX, "a client found no room, and there is");
        end();
        return;
      }
      id = session.id();
      require(id != 0 && clients.stream().filter(other -> other.id == id).count() == 1, "a session has the id of another");
      epoch = 1;
      begunMs = nowMs;
      usedMs = nowMs;
      ask(session, false);
    }

    private void ask(FetchSession session, boolean isChange) {
      List<FetchSession.PartitionName> places = new ArrayList<>();
      Map<FetchSession.PartitionName, Long> there = new LinkedHashMap<>();
      for (FetchTopic topic : session.partitions()) {
        topic.partitions().forEach(each -> {
          places.add(new FetchSession.PartitionName(topic.topic(), topic.topicId(), each.partition()));
          there.put(places.get(places.size() - 1), each.fetchOffset());
        });
      }
      require(there.equals(wanted), "a session has " + there + ", and its client asked for " + wanted);
      require(places.equals(List.copyOf(wanted.keySet())), "a session reads " + places + ", and " + wanted.keySet() + " is the order");
      asked = new ClientRequest(session, isChange, places);
    }

    private void follow() {
      boolean forgetsAll = random.nextInt(10) == 0;
      FetchRequestData request = request(epoch, forgetsAll ? 0 : random.nextInt(3));
      wanted.keySet()
          .stream()
          .filter(place -> forgetsAll || random.nextInt(4) == 0)
          .forEach(place -> request.forgottenTopicsData()
              .add(new ForgottenTopic().setTopic(place.topic()).setTopicId(place.id()).setPartitions(List.of(place.partition()))));
      long added = request.topics().stream().filter(topic -> !wanted.containsKey(place(topic))).count();
      boolean isTooLarge = sessions.partitions() + added > PARTITIONS_MAX;
      note(request);
      FetchSession session;
      try {
        session = sessions.of(request, byId);
      } catch (FetchSessionIdNotFoundException e) {
        require(mayBeGone || isTooLarge, "a session is gone");
        end();
        return;
      }
      require(!isTooLarge, "a session grew beyond the bound");
      if (wanted.isEmpty()) {
        require(session.id() == FetchMetadata.INVALID_SESSION_ID, "a session without partitions goes on");
        end();
        return;
      }
      require(session.id() == id, "a request got the session " + session.id());
      epoch = FetchMetadata.nextEpoch(epoch);
      usedMs = nowMs;
      mayBeGone = false;
      ask(session, true);
    }

    private FetchSession.PartitionName place(FetchTopic topic) {
      return new FetchSession.PartitionName(topic.topic(), topic.topicId(), topic.partitions().get(0).partition());
    }

    /** A request that is refused, and that changes nothing. */
    private void misuse(Class<? extends ApiException> expected, int ofId, int atEpoch, boolean asksById) {
      FetchRequestData request = new FetchRequestData().setSessionId(ofId).setSessionEpoch(atEpoch);
      FetchSession.PartitionName first = wanted.keySet().iterator().next();
      request.topics()
          .add(new FetchTopic().setTopic(asksById ? "" : "t0")
              .setTopicId(asksById ? first.id() : Uuid.ZERO_UUID)
              .setPartitions(List.of(new FetchPartition().setPartition(first.partition()).setFetchOffset(99))));
      if (!first.topic().equals(request.topics().get(0).topic()) || !first.id().equals(request.topics().get(0).topicId())) {
        request.topics().clear(); // A further partition could need room.
      }
      try {
        sessions.of(request, asksById);
      } catch (ApiException e) {
        boolean isGone = e instanceof FetchSessionIdNotFoundException && mayBeGone;
        require(expected.isInstance(e) || isGone, "a request is refused with " + e);
        return;
      }
      throw new Wrong("a request is taken that " + expected.getSimpleName() + " should refuse");
    }

    /** Takes the answer. */
    private void hear() {
      ClientRequest of = asked;
      asked = null;
      for (FetchSession.PartitionName place : of.places) {
        Told now = truth(place);
        boolean hasRecords = !now.isFault && wanted.get(place) < now.end && random.nextInt(3) > 0;
        PartitionData data = new PartitionData().setErrorCode((now.isFault ? Errors.CORRUPT_MESSAGE : Errors.NONE).code())
            .setHighWatermark(now.end)
            .setLogStartOffset(now.start)
            .setRecords(hasRecords ? MemoryRecords.readableRecords(ByteBuffer.allocate(9)) : MemoryRecords.EMPTY);
        boolean isTold = of.session.tells(place, data) || !of.isChange;
        boolean isKnown = now.equals(known.get(place)) && !now.isFault && !hasRecords;
        require(isTold || isKnown, "an answer leaves out " + place + ", whose client does not know " + now);
        require(!isTold || !isKnown || !of.isChange, "an answer has " + place + ", of which its client knows " + now);
        known.put(place, now);
        if (hasRecords) {
          wanted.put(place, wanted.remove(place)); // Its turn is after the others.
        }
      }
    }
  }

  private FetchHistory(long seed) {
    random = new Random(seed);
    sessions = new FetchSessions(SLOTS, PARTITIONS_MAX, new MillisClock(() -> nowMs), random);
    for (int i = 0; i < truth.length; i++) {
      truth[i] = new Told(0, random.nextInt(50), false);
    }
    for (int i = 0; i < CLIENTS; i++) {
      clients.add(new Client());
    }
  }

  private static void require(boolean holds, String fault) {
    if (!holds) {
      throw new Wrong(fault);
    }
  }

  private void play() {
    for (int i = 0; i < ACTS; i++) {
      nowMs += random.nextInt(20) == 0 ? random.nextInt(150_000) : random.nextInt(2_000);
      int number = random.nextInt(truth.length);
      Told told = truth[number];
      truth[number] = switch (random.nextInt(8)) {
        case 0 -> new Told(told.start, told.end, !told.isFault);
        case 1 -> new Told(told.end, told.end, told.isFault);
        default -> new Told(told.start, told.end + random.nextInt(3), told.isFault);
      };
      step(clients.get(random.nextInt(CLIENTS)));
      int partitions = clients.stream().filter(client -> !client.mayBeGone).mapToInt(client -> client.wanted.size()).sum();
      int most = clients.stream().mapToInt(client -> client.wanted.size()).sum();
      require(sessions.size() <= SLOTS && sessions.partitions() <= PARTITIONS_MAX, "there are more sessions than may be");
      require(sessions.partitions() >= partitions && sessions.partitions() <= most,
          "sessions count " + sessions.partitions() + " partitions, and clients have " + partitions + " to " + most);
    }
  }

  private void step(Client client) {
    int choice = random.nextInt(20);
    int wrongEpoch = 1 + random.nextInt(50);
    act = "client " + clients.indexOf(client) + ", choice " + choice;
    if (client.id == 0 || choice == 0) {
      client.begin();
    } else if (choice == 1 && wrongEpoch != client.epoch) {
      client.misuse(InvalidFetchSessionEpochException.class, client.id, wrongEpoch, client.byId);
    } else if (choice == 2) {
      client.misuse(FetchSessionTopicIdException.class, client.id, client.epoch, !client.byId);
    } else if (choice == 3) {
      client.misuse(FetchSessionIdNotFoundException.class, 1 + random.nextInt(1000), 1, client.byId);
    } else if (choice == 4) {
      int id = client.id;
      require(sessions.of(client.request(FetchMetadata.FINAL_EPOCH, 1), client.byId) == null, "a client that ends has a session");
      client.misuse(FetchSessionIdNotFoundException.class, id, client.epoch, client.byId);
      client.end();
    } else if (client.asked != null) {
      client.hear();
    } else {
      client.follow();
    }
  }

  /** "right", or "wrong" with the fault. @param folder is not used */
  static String run(long seed, Path folder) {
    FetchHistory history = new FetchHistory(seed);
    try {
      history.play();
      return "right";
    } catch (Wrong | ApiException e) {
      return "wrong, with seed " + seed + ", at " + history.act + ": " + e;
    }
  }
}
