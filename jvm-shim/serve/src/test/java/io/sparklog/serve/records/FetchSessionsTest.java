package io.sparklog.serve.records;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.sparklog.kit.MillisClock;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.FetchSessionIdNotFoundException;
import org.apache.kafka.common.errors.FetchSessionTopicIdException;
import org.apache.kafka.common.errors.InvalidFetchSessionEpochException;
import org.apache.kafka.common.message.FetchRequestData.FetchPartition;
import org.apache.kafka.common.message.FetchRequestData.FetchTopic;
import org.apache.kafka.common.message.FetchRequestData.ForgottenTopic;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData.PartitionData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.requests.FetchMetadata;
import org.junit.jupiter.api.Test;

/** Sessions keep to their bounds, and to the order of their requests. */
final class FetchSessionsTest {
  private static final int LONG_MS = 120_000;

  private long nowMs = 1_000_000;
  private final FetchSessions sessions = new FetchSessions(2, 10, new MillisClock(() -> nowMs), new Random(1));

  /** A request for the partitions 0 to {@code count} − 1 of topic {@code t}. */
  private static FetchRequestData request(int id, int epoch, int count) {
    List<FetchPartition> partitions = IntStream.range(0, count).mapToObj(number -> new FetchPartition().setPartition(number)).toList();
    FetchRequestData request = new FetchRequestData().setSessionId(id).setSessionEpoch(epoch);
    return count == 0 ? request : request.setTopics(List.of(new FetchTopic().setTopic("t").setPartitions(partitions)));
  }

  private FetchSession begin(int count) {
    return sessions.of(request(0, FetchMetadata.INITIAL_EPOCH, count), false);
  }

  private FetchSession follow(FetchSession session, int epoch) {
    return sessions.of(request(session.id(), epoch, 0), false);
  }

  private static List<Integer> read(FetchSession session) {
    return session.partitions().stream().flatMap(topic -> topic.partitions().stream()).map(FetchPartition::partition).toList();
  }

  private static boolean tells(FetchSession session, int partition, long end) {
    return session.tells(new FetchSession.PartitionName("t", Uuid.ZERO_UUID, partition),
        new PartitionData().setHighWatermark(end).setLogStartOffset(0));
  }

  @Test
  void aRequestOfAnOldClientHasNoSession() {
    assertNull(sessions.of(request(FetchMetadata.INVALID_SESSION_ID, FetchMetadata.FINAL_EPOCH, 3), false));
    assertEquals(0, sessions.size());
  }

  @Test
  void aRequestChangesThePartitionsOfItsSession() {
    FetchSession session = begin(3);
    assertEquals(List.of(0, 1, 2), read(session));
    FetchRequestData change = request(session.id(), 1, 0);
    change.topics()
        .add(new FetchTopic().setTopic("t")
            .setPartitions(List.of(new FetchPartition().setPartition(1).setFetchOffset(7), new FetchPartition().setPartition(5))));
    change.forgottenTopicsData().add(new ForgottenTopic().setTopic("t").setPartitions(List.of(0)));
    assertSame(session, sessions.of(change, false));
    assertEquals(List.of(1, 2, 5), read(session));
    assertEquals(7, session.partitions().get(0).partitions().get(0).fetchOffset());
    assertEquals(3, sessions.partitions());
  }

  /** A client may send fields that no version has, and names that no topic has. */
  @Test
  void aSessionKeepsNoBytesOfUnknownLength() {
    FetchPartition large = new FetchPartition().setPartition(0).setFetchOffset(7);
    large.unknownTaggedFields().add(new RawTaggedField(99, new byte[1000]));
    FetchRequestData request = request(0, FetchMetadata.INITIAL_EPOCH, 0)
        .setTopics(List.of(new FetchTopic().setTopic("t").setPartitions(List.of(large))));
    FetchPartition kept = sessions.of(request, false).partitions().get(0).partitions().get(0);
    assertEquals(List.of(7L, List.of()), List.of(kept.fetchOffset(), kept.unknownTaggedFields()));
    request.topics().get(0).setTopic("x".repeat(30_000));
    assertNull(sessions.of(request, false));
    FetchSession session = begin(1);
    FetchRequestData change = request(session.id(), 1, 1);
    change.topics().get(0).setTopic("x".repeat(30_000));
    assertThrows(FetchSessionIdNotFoundException.class, () -> sessions.of(change, false));
  }

  @Test
  void anAnswerTellsWhatIsNew() {
    FetchSession session = begin(2);
    assertEquals(true, tells(session, 0, 5), "the first answer");
    assertEquals(false, tells(session, 0, 5), "nothing is new");
    assertEquals(true, tells(session, 0, 6), "the end offset is new");
    PartitionData fault = new PartitionData().setErrorCode(Errors.CORRUPT_MESSAGE.code()).setHighWatermark(6).setLogStartOffset(0);
    FetchSession.PartitionName place = new FetchSession.PartitionName("t", Uuid.ZERO_UUID, 0);
    assertEquals(true, session.tells(place, fault));
    assertEquals(true, session.tells(place, fault), "a fault is told each time");
    assertEquals(true, tells(session, 0, 6), "the fault is over");
    assertEquals(false, tells(session, 0, 6));
  }

  @Test
  void aRequestMustFollowTheLastOneOfItsSession() {
    FetchSession session = begin(1);
    follow(session, 1);
    assertThrows(InvalidFetchSessionEpochException.class, () -> follow(session, 1));
    assertThrows(InvalidFetchSessionEpochException.class, () -> follow(session, 3));
    assertThrows(FetchSessionTopicIdException.class, () -> sessions.of(request(session.id(), 2, 0), true));
    follow(session, 2);
    assertThrows(FetchSessionIdNotFoundException.class, () -> sessions.of(request(session.id() + 1, 3, 0), false));
  }

  @Test
  void aSessionEndsWithItsClientOrItsLastPartition() {
    FetchSession first = begin(1);
    FetchSession second = sessions.of(request(first.id(), FetchMetadata.INITIAL_EPOCH, 1), false);
    assertNotEquals(first.id(), second.id());
    assertEquals(1, sessions.size());
    FetchRequestData change = request(second.id(), 1, 0);
    change.forgottenTopicsData().add(new ForgottenTopic().setTopic("t").setPartitions(List.of(0)));
    assertEquals(FetchMetadata.INVALID_SESSION_ID, sessions.of(change, false).id());
    FetchSession third = begin(1);
    assertNull(sessions.of(request(third.id(), FetchMetadata.FINAL_EPOCH, 1), false));
    assertEquals(0, sessions.size());
    assertEquals(0, sessions.partitions());
  }

  @Test
  void aNewSessionTakesThePlaceOfAnUnusedOne() {
    FetchSession first = begin(1);
    FetchSession second = begin(1);
    assertNull(begin(1), "both are in use");
    nowMs += LONG_MS - 1;
    follow(second, 1);
    assertNull(begin(1));
    nowMs += 1;
    FetchSession third = begin(1);
    assertThrows(FetchSessionIdNotFoundException.class, () -> follow(first, 1));
    follow(second, 2);
    follow(third, 1);
  }

  @Test
  void aLargeSessionTakesThePlaceOfAnOldSmallOne() {
    FetchSession large = begin(4);
    FetchSession small = begin(2);
    assertNull(begin(5), "none is old");
    nowMs += LONG_MS - 1;
    follow(large, 1);
    follow(small, 1);
    nowMs += 1;
    assertNull(begin(2), "none is smaller");
    FetchSession larger = begin(3);
    assertThrows(FetchSessionIdNotFoundException.class, () -> follow(small, 2));
    follow(large, 2);
    follow(larger, 1);
    assertEquals(7, sessions.partitions());
  }

  @Test
  void thePartitionsOfAllSessionsAreBounded() {
    FetchSession first = begin(6);
    assertNull(begin(5));
    assertNull(begin(11));
    FetchSession second = begin(4);
    assertThrows(FetchSessionIdNotFoundException.class, () -> sessions.of(request(second.id(), 1, 5), false));
    follow(first, 1);
    assertEquals(6, sessions.partitions());
  }
}
