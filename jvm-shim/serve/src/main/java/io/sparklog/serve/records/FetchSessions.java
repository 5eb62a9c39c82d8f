package io.sparklog.serve.records;

import io.sparklog.segment.Names;
import java.time.Clock;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.random.RandomGenerator;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.FetchMetadata;

/**
 * The fetch sessions of all clients. Their number is bounded, and so is the number of their partitions. A client that finds no room, or
 * whose session was dropped, names all its partitions in each request. For several threads at once.
 */
final class FetchSessions {
  /** As Kafka's {@code min.incremental.fetch.session.eviction.ms}: for so long a session is not dropped for another. */
  private static final long KEPT_MS = 120_000;

  /** The partitions of all sessions: each takes some 300 bytes, and more if its topic has no other partition there. */
  private static final int PARTITIONS_MAX = 100_000;

  private final int slots;
  private final int partitionsMax;
  private final Clock clock;
  private final RandomGenerator random;

  /** From the session that was used longest ago to the newest. */
  private final Map<Integer, Kept> sessions = new LinkedHashMap<>();
  private int partitions;

  /** @param size the partitions that it counts for */
  private record Kept(FetchSession session, int size, long begunMs, long usedMs) {}

  /** @param slots sessions are kept at most */
  FetchSessions(int slots, Clock clock, RandomGenerator random) {
    this(slots, PARTITIONS_MAX, clock, random);
  }

  FetchSessions(int slots, int partitionsMax, Clock clock, RandomGenerator random) {
    this.slots = slots;
    this.partitionsMax = partitionsMax;
    this.clock = clock;
    this.random = random;
  }

  /**
   * The session of a request, with the changes that the request makes; null if the request names all its partitions, and has no session.
   *
   * @param byId whether the request names topics by their id
   * @throws org.apache.kafka.common.errors.ApiException if the session is not known, or the request does not follow its last request
   */
  synchronized FetchSession of(FetchRequestData request, boolean byId) {
    if (request.sessionEpoch() == FetchMetadata.INITIAL_EPOCH || request.sessionEpoch() == FetchMetadata.FINAL_EPOCH) {
      drop(request.sessionId());
      return request.sessionEpoch() == FetchMetadata.INITIAL_EPOCH ? begin(request, byId) : null;
    }
    Kept kept = sessions.get(request.sessionId());
    if (kept == null || hasLongName(request, byId)) {
      throw Errors.FETCH_SESSION_ID_NOT_FOUND.exception("Session " + request.sessionId() + " is not known. Begin another session.");
    }
    if (partitions - kept.size + kept.session.sizeWith(request) > partitionsMax) {
      drop(request.sessionId());
      throw Errors.FETCH_SESSION_ID_NOT_FOUND.exception("Sessions have no room for more partitions. Begin another session.");
    }
    kept.session.follow(request, byId);
    drop(request.sessionId());
    if (kept.session.size() == 0) {
      return new FetchSession(FetchMetadata.INVALID_SESSION_ID, byId); // It has ended.
    }
    keep(kept.session, kept.begunMs);
    return kept.session;
  }

  /** Whether no topic can have a name of the request: such a name may have any length. */
  private static boolean hasLongName(FetchRequestData request, boolean byId) {
    return !byId && request.topics().stream().anyMatch(topic -> Names.illegalTopic(topic.topic()).isPresent());
  }

  /** A new session; null without room, or with a name that no topic can have. */
  private FetchSession begin(FetchRequestData request, boolean byId) {
    int id = random.nextInt(1, Integer.MAX_VALUE);
    FetchSession session = new FetchSession(id, byId);
    int size = session.sizeWith(request);
    if (size == 0 || size > partitionsMax || sessions.containsKey(id) || hasLongName(request, byId)) {
      return null;
    }
    while (sessions.size() >= slots || partitions + size > partitionsMax) {
      if (!dropOne(size)) {
        return null;
      }
    }
    session.add(request);
    keep(session, clock.millis());
    return session;
  }

  private void keep(FetchSession session, long begunMs) {
    Kept kept = new Kept(session, session.size(), begunMs, clock.millis());
    sessions.put(session.id(), kept);
    partitions += kept.size;
  }

  private void drop(int id) {
    Kept dropped = sessions.remove(id);
    partitions -= dropped == null ? 0 : dropped.size;
  }

  /** Drops a session that was not used for long, or an old session with fewer partitions than {@code size}. */
  private boolean dropOne(int size) {
    long before = clock.millis() - KEPT_MS;
    Kept smallest = null;
    for (Iterator<Kept> all = sessions.values().iterator(); all.hasNext();) {
      Kept kept = all.next();
      if (kept.usedMs <= before) {
        all.remove();
        partitions -= kept.size;
        return true;
      }
      smallest = kept.begunMs <= before && kept.size < (smallest == null ? size : smallest.size) ? kept : smallest;
    }
    if (smallest != null) {
      drop(smallest.session.id());
    }
    return smallest != null;
  }

  synchronized int size() {
    return sessions.size();
  }

  synchronized int partitions() {
    return partitions;
  }
}
