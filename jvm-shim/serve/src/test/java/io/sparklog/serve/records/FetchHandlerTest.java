package io.sparklog.serve.records;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.util.ReferenceCounted;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.TopicConfig;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Wire;
import io.sparklog.serve.protocol.Workers;
import io.sparklog.feed.CommitWaits;
import io.sparklog.serve.records.fetch.Fetches;
import io.sparklog.serve.records.fetch.PartitionReads;
import io.sparklog.serve.security.Listener;
import io.sparklog.serve.security.Rights;
import io.sparklog.serve.topics.ServedTopics;
import java.net.InetAddress;
import java.nio.file.Path;
import java.time.Clock;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.message.FetchRequestData.FetchPartition;
import org.apache.kafka.common.message.FetchRequestData.FetchTopic;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A client that asks again and again without taking the answers costs the memory of one answer. */
final class FetchHandlerTest {
  private static final short VERSION = 12;
  private static final long WAIT_S = 120;

  @TempDir
  Path directory;

  private final Workers work = new Workers("test", 2);
  private CommitWaits commits;
  private FetchHandler handler;

  @BeforeEach
  void open() throws Exception {
    WrittenTopic topic = new WrittenTopic(directory, "t").with(TopicConfig.KAFKA_VIEW, "none");
    topic.segment(0, 5).segment(1, 5).commit();
    commits = new CommitWaits(topic.root, work, Clock.systemUTC());
    PartitionReads reads = new PartitionReads(topic.root, Clock.systemUTC(), Long.MAX_VALUE);
    Fetches fetches = new Fetches(topic.root, reads, commits, work);
    FetchSessions sessions = new FetchSessions(1, Clock.systemUTC(), new java.util.Random(1));
    handler = new FetchHandler(new ServedTopics(topic.root, Clock.systemUTC()), fetches, sessions, work, 1 << 20);
  }

  @AfterEach
  void close() {
    commits.close();
    work.close();
  }

  private static RequestHeader header() {
    return new RequestHeader(ApiKeys.FETCH, VERSION, "client", 0);
  }

  private CompletableFuture<FetchResponse> ask(String connection, int maxWaitMs, long offset) {
    RequestContext context = new RequestContext(header(), connection, InetAddress.getLoopbackAddress(), KafkaPrincipal.ANONYMOUS,
        new ListenerName("PLAINTEXT"), SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
    FetchTopic wanted = new FetchTopic().setTopic("t");
    for (int partition = 0; partition < 2; partition++) {
      wanted.partitions().add(new FetchPartition().setPartition(partition).setFetchOffset(offset).setPartitionMaxBytes(1 << 20));
    }
    FetchRequestData data = new FetchRequestData().setTopics(List.of(wanted)).setMinBytes(1).setMaxWaitMs(maxWaitMs).setMaxBytes(1 << 20);
    return handler.answer(new ClientRequest(context, new Listener("PLAINTEXT", Rights.ALL, false, List.of())),
        new FetchRequest(data, VERSION));
  }

  private static List<ReferenceCounted> sent(CompletableFuture<FetchResponse> answer) throws Exception {
    return Wire.frame(UnpooledByteBufAllocator.DEFAULT, header(), answer.get(WAIT_S, TimeUnit.SECONDS).data());
  }

  private static void release(List<ReferenceCounted> parts) {
    parts.forEach(ReferenceCounted::release);
  }

  @Test
  void aRequestIsReadWhenTheAnswerBeforeItIsSent() throws Exception {
    List<ReferenceCounted> first = sent(ask("1", 0, 0));
    CompletableFuture<FetchResponse> second = ask("1", 0, 0);
    CompletableFuture<FetchResponse> third = ask("1", 0, 0);
    release(sent(ask("2", 0, 0)));
    assertFalse(second.isDone(), "a connection waits for itself, and no other connection does");
    first.subList(0, first.size() - 1).forEach(ReferenceCounted::release);
    release(sent(ask("3", 0, 0)));
    assertFalse(second.isDone(), "the end of the first answer is not sent");
    first.get(first.size() - 1).release();
    List<ReferenceCounted> next = sent(second);
    assertFalse(third.isDone());
    release(next);
    release(sent(third));
  }

  @Test
  void anAnswerWithoutRecordsEndsItsTurnAtOnce() throws Exception {
    assertEquals(2, ask("1", 0, 5).get(WAIT_S, TimeUnit.SECONDS).data().responses().get(0).partitions().size());
    release(sent(ask("1", 0, 0)));
  }

  @Test
  void aRequestThatIsGivenUpEndsItsTurn() throws Exception {
    CompletableFuture<FetchResponse> waiting = ask("1", 600_000, 5);
    CompletableFuture<FetchResponse> next = ask("1", 0, 0);
    waiting.cancel(false);
    next.get(WAIT_S, TimeUnit.SECONDS);
  }
}
