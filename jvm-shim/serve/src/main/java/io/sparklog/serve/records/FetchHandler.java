package io.sparklog.serve.records;

import io.netty.buffer.Unpooled;
import io.netty.util.ReferenceCounted;
import io.sparklog.log.State;
import io.sparklog.segment.Names;
import io.sparklog.serve.protocol.Wire.AfterSend;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.KafkaErrors;
import io.sparklog.serve.protocol.Wire.RecordParts;
import io.sparklog.serve.protocol.Workers;
import io.sparklog.serve.records.fetch.Fetches;
import io.sparklog.serve.records.fetch.FetchedPartition;
import io.sparklog.serve.records.fetch.FetchedBytes;
import io.sparklog.serve.records.fetch.PartitionReads;
import io.sparklog.serve.records.fetch.PartitionFetch;
import io.sparklog.serve.topics.ServedTopics;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.random.RandomGenerator;
import org.apache.kafka.common.message.FetchRequestData.FetchPartition;
import org.apache.kafka.common.message.FetchRequestData.FetchTopic;
import org.apache.kafka.common.message.FetchResponseData.FetchableTopicResponse;
import org.apache.kafka.common.message.FetchResponseData.PartitionData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.FetchMetadata;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;

/**
 * Gives records. All that is committed is stable, so the high watermark and the last stable offset are the end offset, and both isolation
 * levels see the same. A connection has the records of one answer in memory at most: its next request is looked at when these are sent.
 */
public final class FetchHandler {
  /** The first version that names topics by id alone. */
  private static final short BY_ID = 13;

  private final ServedTopics topics;
  private final Fetches fetches;
  private final Workers work;
  private final FetchSessions sessions;
  private final int bytesMax;

  /** The newest turn of each connection that has one. */
  private final Map<String, CompletableFuture<Void>> turns = new ConcurrentHashMap<>();

  /**
   * @param sessionsMax fetch sessions are kept at most
   * @param random of the ids of sessions
   * @param bytesMax of the records of an answer; a client may ask for fewer
   */
  public FetchHandler(ServedTopics topics, Fetches fetches, int sessionsMax, RandomGenerator random, Workers work, int bytesMax) {
    this(topics, fetches, new FetchSessions(sessionsMax, Clock.systemUTC(), random), work, bytesMax);
  }

  FetchHandler(ServedTopics topics, Fetches fetches, FetchSessions sessions, Workers work, int bytesMax) {
    this.topics = topics;
    this.sessions = sessions;
    this.fetches = fetches;
    this.work = work;
    this.bytesMax = bytesMax;
  }

  /** The partitions of a request. @param session null without a session @param isChange whether the answer has changes alone */
  private record Asks(FetchSession session, boolean isChange, List<FetchLine> lines) {}

  /** One partition of a request. @param error the reason why it is not read; null if it is */
  private record FetchLine(FetchTopic topic, int partition, Errors error, PartitionFetch wanted) {}

  public CompletableFuture<FetchResponse> answer(ClientRequest asked, FetchRequest request) {
    CompletableFuture<FetchResponse> answer = new CompletableFuture<>();
    takeTurn(asked.context().connectionId, turn -> {
      answer.whenComplete((data, failure) -> {
        if (failure != null) {
          turn.complete(null); // Nothing is sent that could end it.
        }
      });
      work.run(() -> {
        fetch(request, asks(asked, request), answer, turn);
        return null;
      }).exceptionally(failure -> {
        answer.completeExceptionally(failure);
        return null;
      });
    });
    return answer;
  }

  /**
   * Begins a turn when the turns before it on the connection have ended, as a broker answers the requests of a connection one after
   * another. Is called by one thread at a time for a connection.
   *
   * @param begin is called with the turn, which ends when it is completed
   */
  private void takeTurn(String connection, Consumer<CompletableFuture<Void>> begin) {
    CompletableFuture<Void> turn = new CompletableFuture<>();
    CompletableFuture<Void> before = turns.put(connection, turn);
    turn.whenComplete((done, failure) -> turns.remove(connection, turn));
    if (before == null) {
      begin.accept(turn);
    } else {
      before.whenComplete((done, failure) -> begin.accept(turn));
    }
  }

  private Asks asks(ClientRequest asked, FetchRequest request) {
    boolean isById = asked.version() >= BY_ID;
    FetchSession session = sessions.of(request.data(), isById);
    boolean isChange = session != null && request.data().sessionEpoch() != FetchMetadata.INITIAL_EPOCH;
    return new Asks(session, isChange, lines(asked, isById, isChange ? session.partitions() : request.data().topics()));
  }

  private List<FetchLine> lines(ClientRequest asked, boolean isById, List<FetchTopic> wantedTopics) {
    List<FetchLine> lines = new ArrayList<>();
    for (FetchTopic topic : wantedTopics) {
      Optional<String> name = isById ? topics.name(topic.topicId().toString()) : Optional.of(topic.topic());
      String id = isById ? topic.topicId().toString() : null;
      for (FetchPartition partition : topic.partitions()) {
        Errors error = name.isEmpty()
            ? Errors.UNKNOWN_TOPIC_ID
            : Names.illegalTopic(name.get()).isPresent()
                ? Errors.INVALID_TOPIC_EXCEPTION
                : !asked.rights().mayRead(name.get())
                    ? Errors.TOPIC_AUTHORIZATION_FAILED
                    : partition.currentLeaderEpoch() > 0 ? Errors.UNKNOWN_LEADER_EPOCH : null;
        PartitionFetch wanted = error != null
            ? null
            : new PartitionFetch(name.get(), id, partition.partition(), partition.fetchOffset(), partition.partitionMaxBytes());
        lines.add(new FetchLine(topic, partition.partition(), error, wanted));
      }
    }
    return lines;
  }

  private void fetch(FetchRequest request, Asks asks, CompletableFuture<FetchResponse> answer, CompletableFuture<Void> turn) {
    List<FetchLine> lines = asks.lines;
    List<PartitionFetch> wanted = lines.stream().filter(line -> line.error == null).map(FetchLine::wanted).toList();
    long waitMs = wanted.size() < lines.size() ? 0 : Math.max(0, request.maxWait());
    CompletableFuture<List<FetchedPartition>> reading = fetches
        .fetch(new Fetches.Fetch(wanted, request.minBytes(), Math.min(request.maxBytes(), bytesMax), waitMs));
    answer.whenComplete((data, failure) -> reading.cancel(false)); // The connection ended, or the answer is there.
    reading.thenAccept(found -> {
      AfterSend sent = new AfterSend(() -> {
        closeCopies(found);
        turn.complete(null);
      });
      boolean isAnswered = false;
      try {
        isAnswered = answer.complete(FetchResponse.of(message(asks, found, sent)));
      } finally {
        if (!isAnswered) {
          Fetches.close(found);
        }
      }
      if (found.stream().allMatch(one -> one.parts().isEmpty())) {
        turn.complete(null);
      }
    }).exceptionally(failure -> {
      answer.completeExceptionally(failure);
      return null;
    });
  }

  /** Files are closed each by its own region. */
  private static void closeCopies(List<FetchedPartition> found) {
    found.forEach(one -> PartitionReads.close(one.parts().stream().filter(part -> part instanceof FetchedBytes.Copied).toList()));
  }

  /** @param sent goes with the last records, if there are any */
  private static FetchResponseData message(Asks asks, List<FetchedPartition> found, AfterSend sent) {
    FetchSession session = asks.session;
    FetchResponseData data = new FetchResponseData().setSessionId(session == null ? FetchMetadata.INVALID_SESSION_ID : session.id());
    FetchedPartition lastWithParts = found.stream().filter(one -> !one.parts().isEmpty()).reduce((one, next) -> next).orElse(null);
    FetchTopic last = null;
    int next = 0;
    for (FetchLine line : asks.lines) {
      FetchedPartition one = line.error == null ? found.get(next++) : null;
      PartitionData partition = one == null
          ? FetchResponse.partitionResponse(line.partition, line.error)
          : partition(line.wanted, one, one == lastWithParts ? List.of(sent) : List.of());
      FetchSession.PartitionName place = new FetchSession.PartitionName(line.topic.topic(), line.topic.topicId(), line.partition);
      boolean isTold = session == null || session.tells(place, partition);
      if (!isTold && asks.isChange) {
        continue;
      }
      if (line.topic != last) {
        last = line.topic;
        data.responses().add(new FetchableTopicResponse().setTopic(last.topic()).setTopicId(last.topicId()));
      }
      data.responses().get(data.responses().size() - 1).partitions().add(partition);
    }
    return data;
  }

  private static PartitionData partition(PartitionFetch wanted, FetchedPartition found, List<AfterSend> after) {
    int number = wanted.partition();
    if (found.failure() != null) {
      Errors error = KafkaErrors.of(found.failure());
      boolean isOfTopic = error == Errors.UNKNOWN_TOPIC_OR_PARTITION && found.state() == null && wanted.topicId() != null;
      return FetchResponse.partitionResponse(number, isOfTopic ? Errors.UNKNOWN_TOPIC_ID : error);
    }
    State state = found.state();
    long end = state.end(number);
    return new PartitionData().setPartitionIndex(number)
        .setHighWatermark(end)
        .setLastStableOffset(end)
        .setLogStartOffset(state.start(number))
        .setAbortedTransactions(null)
        .setRecords(records(found, after));
  }

  private static BaseRecords records(FetchedPartition found, List<AfterSend> after) {
    if (found.parts().isEmpty()) {
      return MemoryRecords.EMPTY;
    }
    List<ReferenceCounted> parts = new ArrayList<>();
    for (FetchedBytes part : found.parts()) {
      if (part instanceof FetchedBytes.FromFile file) {
        parts.addAll(FileBatches.pieces(file));
      } else {
        parts.add(Unpooled.wrappedBuffer(((FetchedBytes.Copied) part).take()));
      }
    }
    return new RecordParts(parts, after, found.bytes());
  }
}
