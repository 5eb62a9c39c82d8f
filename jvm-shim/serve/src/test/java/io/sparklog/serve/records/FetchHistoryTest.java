package io.sparklog.serve.records;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.sparklog.kit.BrokenRule;
import io.sparklog.kit.Seed;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Fetch sessions in random orders of requests. */
final class FetchHistoryTest {
  @Test
  void sessionsAgreeWithTheirClients() {
    long first = Seed.draw();
    for (long seed = first; seed < first + Seed.either(100, 30_000); seed++) {
      assertEquals("right", FetchHistory.run(seed, null));
    }
  }

  static List<BrokenRule> rules() {
    String one = "serve/records/FetchSession.";
    String all = "serve/records/FetchSessions.";
    return List.of(
        new BrokenRule(0, "a request must have the next epoch", one + "follow", "if (request.sessionEpoch() != epoch) {", "if (false) {"),
        new BrokenRule(0, "a session names topics in one way", one + "follow", "if (byId != asksById) {", "if (false) {"),
        new BrokenRule(0, "a forgotten partition is not read", one + "follow", "lines.remove(", "lines.get("),
        new BrokenRule(0, "the newest offset of a partition counts", one + "add", "known.asked = kept(partition);", ""),
        new BrokenRule(0, "the end of a fault is told", one + "tells", "line.toldEnd = isFault ? -1 : data.highWatermark();",
            "line.toldEnd = data.highWatermark();\n    isFault = isFault && false;"),
        new BrokenRule(0, "a log start offset is told", one + "tells", "|| data.logStartOffset() != line.toldStart", ""),
        new BrokenRule(0, "an end offset is told", one + "tells", "data.highWatermark() != line.toldEnd ||", ""),
        new BrokenRule(0, "records are told", one + "tells", "|| hasRecords;", ";"),
        new BrokenRule(0, "a fault is told each time", one + "tells", "return isFault ||", "return"),
        new BrokenRule(0, "each partition has its turn", one + "tells", "lines.remove(place);", ""),
        new BrokenRule(0, "a client that ends has no session", all + "of",
            "drop(request.sessionId());\n      return request.sessionEpoch()", "return request.sessionEpoch()"),
        new BrokenRule(0, "a session that ends frees its partitions", all + "drop", "partitions -= dropped == null ? 0 : dropped.size;",
            ""),
        new BrokenRule(0, "a session that is dropped frees its partitions", all + "dropOne", "partitions -= kept.size;", ""),
        new BrokenRule(0, "a session in use is kept", all + "dropOne", "kept.usedMs <= before", "kept.usedMs <= before + KEPT_MS"),
        new BrokenRule(0, "a young session is kept", all + "dropOne", "kept.begunMs <= before && kept.size", "kept.size"),
        new BrokenRule(0, "a small session goes for a large session alone", all + "dropOne",
            "kept.size < (smallest == null ? size : smallest.size)", "smallest == null"),
        new BrokenRule(0, "partitions are bounded when a session begins", all + "begin", "|| partitions + size > partitionsMax", ""),
        new BrokenRule(0, "partitions are bounded when a session grows", all + "of",
            "if (partitions - kept.size + kept.session.sizeWith(request) > partitionsMax) {", "if (false) {"),
        new BrokenRule(0, "sessions are bounded", all + "begin", "sessions.size() >= slots ||", ""),
        new BrokenRule(0, "a use of a session counts", all + "keep", "begunMs, clock.millis());", "begunMs, begunMs);"),
        new BrokenRule(0, "a session without partitions ends", all + "of", "if (kept.session.size() == 0) {", "if (false) {"));
  }

  @Tag("slow")
  @ParameterizedTest
  @MethodSource("rules")
  void eachRuleIsNeeded(BrokenRule rule) throws Throwable {
    rule.requireFound(FetchHistory.class, null);
  }
}
