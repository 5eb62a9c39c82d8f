package io.sparklog.serve.records;

import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.segment.Names;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handlers;
import io.sparklog.serve.protocol.KafkaErrors;
import io.sparklog.serve.protocol.Workers;
import io.sparklog.commits.AppendResult;
import io.sparklog.commits.PreparedAppend;
import io.sparklog.commits.Intake;
import io.sparklog.commits.TopicWriters;
import io.sparklog.serve.topics.ServedTopics;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import java.nio.ByteBuffer;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.random.RandomGenerator;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.InitProducerIdRequestData;
import org.apache.kafka.common.message.InitProducerIdResponseData;
import org.apache.kafka.common.message.ProduceRequestData.PartitionProduceData;
import org.apache.kafka.common.message.ProduceRequestData.TopicProduceData;
import org.apache.kafka.common.message.ProduceResponseData.PartitionProduceResponse;
import org.apache.kafka.common.message.ProduceResponseData.TopicProduceResponse;
import org.apache.kafka.common.message.ProduceResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.requests.InitProducerIdRequest;
import org.apache.kafka.common.requests.InitProducerIdResponse;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.requests.ProduceResponse;

/**
 * Adds batches. The batches of a connection wait for their commits in the order of its requests, and are checked at the same time: so all
 * requests that a client has in flight share a commit.
 */
public final class ProduceHandler {
  /** A check may decompress so many bytes. */
  private static final long CHECK_BYTES = 64 << 20;

  private static final Set<Short> ACKS = Set.of((short) -1, (short) 0, (short) 1);

  private final ServedTopics topics;
  private final TopicWriters writers;
  private final Clock clock;
  private final Workers work;
  private final Workers checks;

  /** The ids of the topics whose keys clients route in another way than the topic does. */
  private final Set<String> split = ConcurrentHashMap.newKeySet();

  /** By connection, the last request whose batches do not wait for their commit yet. */
  private final Map<String, CompletableFuture<?>> unnamed = new ConcurrentHashMap<>();

  /** @param checks the threads that check batches, {@link #checksAtOnce} of them; so checks that wait hold no thread of {@code work} */
  public ProduceHandler(ServedTopics topics, TopicWriters writers, Clock clock, Workers work, Workers checks) {
    this.topics = topics;
    this.writers = writers;
    this.clock = clock;
    this.work = work;
    this.checks = checks;
  }

  /** @param random is safe for many threads */
  public void addTo(Handlers handlers, RandomGenerator random) {
    handlers.add(ApiKeys.PRODUCE, this::answer)
        .add(ApiKeys.INIT_PRODUCER_ID, (ClientRequest asked, InitProducerIdRequest request) -> giveId(asked, request, random));
  }

  /** Gives a producer its id: a random number of 63 bits, so that no server must ask another. */
  private static CompletableFuture<InitProducerIdResponse> giveId(ClientRequest asked, InitProducerIdRequest request,
      RandomGenerator random) {
    InitProducerIdRequestData data = request.data();
    if (data.transactionalId() != null) {
      throw Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.exception("Transactions are not supported.");
    }
    if (asked.rights().readOnly()) {
      throw Errors.CLUSTER_AUTHORIZATION_FAILED.exception("Clients of this listener write no records.");
    }
    boolean isKnown = data.producerId() >= 0 && data.producerEpoch() >= 0 && data.producerEpoch() < Short.MAX_VALUE;
    return CompletableFuture.completedFuture(new InitProducerIdResponse(
        new InitProducerIdResponseData().setProducerId(isKnown ? data.producerId() : random.nextLong(Long.MAX_VALUE))
            .setProducerEpoch(isKnown ? (short) (data.producerEpoch() + 1) : 0)));
  }

  /**
   * How many checks a process of this size can make at once: they take an eighth of the heap at most, or are one.
   *
   * @param threads the most
   */
  public static int checksAtOnce(int threads) {
    return (int) Math.max(1, Math.min(threads, Runtime.getRuntime().maxMemory() / 8 / CHECK_BYTES));
  }

  /** The batches of one partition of a request. @param checked is complete when they are checked */
  private record PartitionBatches(int partition, ByteBuffer records, CompletableFuture<PreparedAppend> checked,
      CompletableFuture<AppendResult> done) {}

  /** The batches of one topic of a request. @param error of the whole topic, or null */
  private record TopicBatches(String name, Uuid id, Errors error, List<PartitionBatches> parts) {}

  CompletableFuture<ProduceResponse> answer(ClientRequest asked, ProduceRequest request) {
    if (request.transactionalId() != null) {
      throw Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.exception("Transactions are not supported.");
    }
    if (!ACKS.contains(request.acks())) {
      throw Errors.INVALID_REQUIRED_ACKS.exception();
    }
    CompletableFuture<ProduceResponse> answer = named(asked, request).thenCompose(parts -> answered(parts));
    return request.acks() == 0 ? answer.thenApply(ProduceHandler::silent) : answer;
  }

  /** Puts the batches into their queues: now, unless the name of a topic, or an earlier request of the connection, must be waited for. */
  private CompletableFuture<List<TopicBatches>> named(ClientRequest asked, ProduceRequest request) {
    String connection = asked.context().connectionId();
    CompletableFuture<?> earlier = unnamed.get(connection);
    boolean isKnown = request.data().topicData().stream().allMatch(topic -> writers.serves(name(topic)));
    if (isKnown && (earlier == null || earlier.isDone())) {
      return CompletableFuture.completedFuture(queued(asked, request, Set.of()));
    }
    CompletableFuture<?> before = earlier == null ? CompletableFuture.completedFuture(null) : earlier.exceptionally(failure -> null);
    CompletableFuture<List<TopicBatches>> later = before.thenCompose(done -> work.run(() -> queued(asked, request, absent(request))));
    unnamed.put(connection, later);
    later.whenComplete((done, failure) -> unnamed.remove(connection, later));
    return later;
  }

  private static boolean isByName(TopicProduceData topic) {
    return topic.topicId().equals(Uuid.ZERO_UUID);
  }

  /** The name of the topic; empty if no topic that this process has seen has its id. */
  private String name(TopicProduceData topic) {
    return isByName(topic) ? topic.name() : topics.knownName(topic.topicId().toString()).orElse("");
  }

  /** The topics of a request that do not exist. A topic that cannot be read exists: its batches get the error. */
  private Set<String> absent(ProduceRequest request) {
    Set<String> absent = new HashSet<>();
    for (TopicProduceData topic : request.data().topicData()) {
      if (!isByName(topic)) {
        topics.name(topic.topicId().toString());
      }
      String name = name(topic);
      try {
        if (!writers.serves(name) && topics.recent(name).isEmpty()) { // A topic that is gone is refused by its commit.
          absent.add(name);
        }
      } catch (PartlogException e) {
        Warnings.warn(ProduceHandler.class, "Topic {} cannot be read: {}", name, e.getMessage());
      }
    }
    return absent;
  }

  private List<TopicBatches> queued(ClientRequest asked, ProduceRequest request, Set<String> absent) {
    List<TopicBatches> queued = new ArrayList<>();
    for (TopicProduceData topic : request.data().topicData()) {
      String name = name(topic);
      Errors error = error(asked, topic, name, absent);
      List<PartitionBatches> parts = new ArrayList<>();
      for (PartitionProduceData partition : topic.partitionData()) {
        ByteBuffer records = partition.records() instanceof MemoryRecords memory ? memory.buffer() : ByteBuffer.allocate(0);
        CompletableFuture<PreparedAppend> checked = new CompletableFuture<>();
        CompletableFuture<AppendResult> done = error == null
            ? append(topic, name, partition.index(), records, checked)
            : refuse(topic, name, partition.index(), records, error);
        parts.add(new PartitionBatches(partition.index(), records, checked, done));
      }
      if (error == null) {
        checks.run(() -> {
          check(name, topic.topicId(), parts);
          return null;
        }).exceptionally(e -> fail(parts, e)); // Without an answer, a part would block its topic.
      }
      queued.add(new TopicBatches(name, topic.topicId(), error, parts));
    }
    return queued;
  }

  private CompletableFuture<AppendResult> append(TopicProduceData topic, String name, int partition, ByteBuffer records,
      CompletableFuture<PreparedAppend> checked) {
    if (!isByName(topic)) {
      writers.named(topic.topicId().toString(), name, partition, records);
    }
    return writers.append(name, partition, records, checked);
  }

  private CompletableFuture<AppendResult> refuse(TopicProduceData topic, String name, int partition, ByteBuffer records, Errors error) {
    if (error == Errors.UNKNOWN_TOPIC_ID || error == Errors.UNKNOWN_TOPIC_OR_PARTITION) {
      writers.refused(name.isEmpty() ? topic.topicId().toString() : name, partition, records, error.exception());
    }
    return CompletableFuture.failedFuture(error.exception());
  }

  private static Errors error(ClientRequest asked, TopicProduceData topic, String name, Set<String> absent) {
    if (!isByName(topic) && name.isEmpty()) {
      return Errors.UNKNOWN_TOPIC_ID;
    }
    if (Names.illegalTopic(name).isPresent()) {
      return Errors.INVALID_TOPIC_EXCEPTION;
    }
    if (!asked.rights().mayWrite(name)) {
      return Errors.TOPIC_AUTHORIZATION_FAILED;
    }
    return absent.contains(name) ? Errors.UNKNOWN_TOPIC_OR_PARTITION : null;
  }

  /**
   * Checks the batches of a topic, and tells the writer of the topic. The commit decides again about the topic, its partitions and its
   * keys: so a state of a moment ago may accept a batch. The newest state alone may refuse one.
   */
  private void check(String name, Uuid id, List<PartitionBatches> parts) {
    try {
      State state = topics.recent(name).filter(recent -> hasId(recent, id)).orElseGet(() -> newest(name, id));
      Intake intake = new Intake(state, clock);
      for (PartitionBatches part : parts) {
        Exception refusal = refusal(state, intake, part);
        if (refusal == null) {
          continue;
        }
        State newest = newest(name, id);
        if (newest != state) {
          state = newest;
          intake = new Intake(state, clock);
          refusal = refusal(state, intake, part);
        }
        if (refusal != null) {
          part.checked().completeExceptionally(refusal);
        }
      }
    } catch (Throwable e) { // An Error, too, must not leave the queue of the topic waiting.
      fail(parts, e);
    }
  }

  private State newest(String name, Uuid id) {
    State state = topics.newest(name).orElseThrow(Errors.UNKNOWN_TOPIC_OR_PARTITION::exception);
    if (!hasId(state, id)) {
      throw Errors.UNKNOWN_TOPIC_ID.exception();
    }
    return state;
  }

  /** @param id that the client gave; zero if it gave a name */
  private static boolean hasId(State state, Uuid id) {
    return id.equals(Uuid.ZERO_UUID) || state.topicId().equals(id.toString());
  }

  /** Why the batches of a partition may not be added; null if they are checked. */
  private Exception refusal(State state, Intake intake, PartitionBatches part) {
    try {
      PreparedAppend prepared = intake.prepared(part.partition(), part.records());
      part.checked().complete(prepared);
      if (prepared.batches().stream().anyMatch(batch -> batch.keys() == PreparedAppend.KeyHomes.ASTRAY)) {
        warnOfSplitKeys(state);
      }
      return null;
    } catch (Exception refused) {
      return refused;
    }
  }

  /** Once for each topic: a program may choose partitions on purpose. */
  private void warnOfSplitKeys(State state) {
    if (!state.hasSlots() && split.add(state.topicId())) { // A topic with slots refuses such records.
      Warnings.warn(ProduceHandler.class,
          "A client sends keys of topic {} under {} to other partitions than {}, the topic's partitioner, gives them. If another program"
              + " writes these keys too, a key has records in two partitions: let all writers route keys alike. This is said once.",
          state.topic(), topics.root().location(), state.config().entries().get(TopicConfig.PARTITIONER));
    }
  }

  private static Void fail(List<PartitionBatches> parts, Throwable e) {
    parts.forEach(part -> part.checked().completeExceptionally(e));
    return null;
  }

  private static CompletableFuture<ProduceResponse> answered(List<TopicBatches> queued) {
    ProduceResponseData data = new ProduceResponseData();
    List<CompletableFuture<?>> all = new ArrayList<>();
    for (TopicBatches topic : queued) {
      TopicProduceResponse response = new TopicProduceResponse().setName(topic.name()).setTopicId(topic.id());
      data.responses().add(response);
      for (PartitionBatches part : topic.parts()) {
        PartitionProduceResponse answer = new PartitionProduceResponse().setIndex(part.partition()).setBaseOffset(-1);
        response.partitionResponses().add(answer);
        all.add(part.done().handle((appended, failure) -> failure == null ? told(answer, appended) : told(answer, failure)));
      }
    }
    return CompletableFuture.allOf(all.toArray(CompletableFuture[]::new)).thenApply(done -> new ProduceResponse(data));
  }

  private static PartitionProduceResponse told(PartitionProduceResponse answer, AppendResult appended) {
    return answer.setBaseOffset(appended.base()).setLogAppendTimeMs(appended.time()).setLogStartOffset(appended.logStart());
  }

  private static PartitionProduceResponse told(PartitionProduceResponse answer, Throwable failure) {
    ApiError error = KafkaErrors.error(failure);
    return answer.setErrorCode((error.is(Errors.UNKNOWN_SERVER_ERROR) ? Errors.KAFKA_STORAGE_ERROR : error.error()).code())
        .setErrorMessage(error.message());
  }

  /** The client wants no answer. If a batch is refused, its connection ends, which is all that it can learn. */
  private static ProduceResponse silent(ProduceResponse response) {
    response.data().responses().forEach(topic -> topic.partitionResponses().forEach(partition -> {
      if (partition.errorCode() != 0) {
        throw Errors.forCode(partition.errorCode()).exception(partition.errorMessage());
      }
    }));
    return null;
  }
}
