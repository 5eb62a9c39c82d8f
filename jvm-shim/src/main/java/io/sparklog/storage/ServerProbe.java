package io.sparklog.storage;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Whether this process knows that puts are exclusive in a bucket of a server. It tries once. The files under the root prove nothing. A
 * process that finds the note of another one need not try. FORMAT.md annex J.
 */
final class ServerProbe {
  private static final String NOTE = "passed.json";
  private static final int NOTE_BYTES_MAX = 4096;
  private static final Duration NOTE_LIFE = Duration.ofDays(1);

  /** A note is put that long after its trial, or it is a copy. */
  private static final Duration NOTE_LATE = Duration.ofSeconds(60);

  /** A trial takes seconds. So a refusal counts that long for the writes that follow. */
  private static final Duration REFUSED = Duration.ofMinutes(1);

  /** Those of this process, by endpoint and bucket. */
  private static final Map<List<String>, ServerProbe> KNOWN = new ConcurrentHashMap<>();

  private final String endpoint;
  private final String bucket;
  private volatile boolean passed;
  private PartlogException refusal;
  private long refusedAtMs;

  ServerProbe(String endpoint, String bucket) {
    this.endpoint = endpoint;
    this.bucket = bucket;
  }

  /** The probe of this process. */
  static ServerProbe of(String endpoint, String bucket) {
    return KNOWN.computeIfAbsent(List.of(endpoint, bucket), server -> new ServerProbe(endpoint, bucket));
  }

  /**
   * Makes sure of it, unless that was done.
   *
   * @param store of a root there
   * @param folder of the root, for the files of a trial and for notes
   * @throws PartlogException STORE_UNSAFE
   * @throws IOException if it cannot be told, as without permission
   */
  void require(LogStore store, String folder, Clock clock) throws IOException {
    if (passed) {
      return;
    }
    synchronized (this) { // Other threads wait for the thread that tries.
      if (!passed && refusal != null && Math.abs(clock.millis() - refusedAtMs) < REFUSED.toMillis()) {
        Map<String, String> why = refusal.parameters();
        throw PartlogException.of("STORE_UNSAFE", "root", store.root(), "endpoint", why.get("endpoint"), "reason", why.get("reason"));
      }
      if (!passed && !isNoted(store, folder, clock)) {
        try {
          attempt(store, folder);
        } catch (PartlogException unsafe) {
          refusal = unsafe;
          refusedAtMs = clock.millis();
          throw unsafe;
        }
      }
      passed = true;
    }
  }

  private void attempt(LogStore store, String folder) throws IOException {
    PutProbe.Result result = new PutProbe(store, folder).run(PutProbe.KEYS);
    result.requireSafe();
    if (result.unanswered() > result.won() + result.refused()) {
      throw result.failure();
    }
    if (result.atMs() >= 0) {
      note(store, folder, result.atMs());
    }
  }

  private boolean isNoted(LogStore store, String folder, Clock clock) {
    String name = folder + "/" + NOTE;
    try {
      JsonNode note = new ObjectMapper().readTree(store.read(name, NOTE_BYTES_MAX));
      long at = note.path("at").asLong(Long.MIN_VALUE / 2);
      return note.path("endpoint").asText().equals(endpoint) && note.path("bucket").asText().equals(bucket)
          && Math.abs(clock.millis() - at) <= NOTE_LIFE.toMillis() && Math.abs(store.modifiedMs(name) - at) <= NOTE_LATE.toMillis();
    } catch (IOException none) {
      return false;
    }
  }

  /** A failure is not even logged: the next process tries by itself. */
  private void note(LogStore store, String folder, long atMs) {
    String name = folder + "/" + NOTE;
    try {
      store.delete(name);
    } catch (IOException stays) {
      // S3 replaces it.
    }
    try {
      byte[] content = new ObjectMapper().writeValueAsBytes(Map.of("endpoint", endpoint, "bucket", bucket, "at", atMs));
      try (FileAppender file = store.create(name)) {
        file.write(content, 0, content.length);
        file.sync();
      }
    } catch (IOException none) {
      // No note exists.
    }
  }
}
