package io.sparklog.catalog;

import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.Version;
import io.sparklog.spark.StreamingQueries;
import io.sparklog.spec.Option;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.StringJoiner;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * VERSION AS OF and TIMESTAMP AS OF. A version stands for its offsets, and these are read from the newest state. Merges change files, but
 * not offsets. So the records of a version can be read until they are deleted. In a topic that keeps versions, they are read from the state
 * of then, and so records that were deleted since can be read, too.
 */
final class TimeTravel {
  private static final List<String> BOUNDS = List.of("startingOffsets", "endingOffsets", "startingTimestamp", "endingTimestamp",
      "startingOffsetsByTimestamp", "endingOffsetsByTimestamp", "assign", "share", "subscribePattern", "failOnDataLoss");

  /** Options by which Spark asks a catalog for a table of then. It hands them on to a format, too, which has no tables. */
  private static final List<String> THEN = List.of("versionAsOf", "timestampAsOf");

  private TimeTravel() {}

  /** Refuses a load or a save of an earlier version. @throws PartlogException OPTION_VALUE */
  static void requireNow(CaseInsensitiveStringMap options) {
    THEN.stream().filter(options::containsKey).findFirst().ifPresent(key -> {
      String value = options.get(key);
      throw Option.invalidValue(key, value, "name a table of a catalog in a batch, spark.read.option(\"" + key + "\", \"" + value
          + "\").table(\"partlog.`<root>`.<topic>\"); a stream takes startingOffsets or startingTimestamp");
    });
  }

  /** Refuses a stream from a table of then: Spark does not plan one. @throws PartlogException STATEMENT_UNSUPPORTED */
  static void requireBatch(String table) {
    if (StreamingQueries.isBeingDefined()) {
      throw Definition.refused("readStream with " + String.join(" or ", THEN), table, "a stream reads on from where it begins",
          "Leave the option out, and give startingOffsets or startingTimestamp; an earlier version is read in a batch");
    }
  }

  /** The state at version {@code asked}. @throws PartlogException VERSION_UNREADABLE, TOPIC_NOT_FOUND */
  static State version(Root root, String topic, String asked) throws IOException {
    State state = root.state(topic);
    String what = "version " + asked;
    if (!asked.matches("[0-9]{1,18}")) {
      throw unreadable(root, topic, what, "a version is a number from 0 on", "Give a number of <table>.commits");
    }
    long number = Long.parseLong(asked);
    if (number > state.version()) {
      throw unreadable(root, topic, what, "the newest version is " + state.version(), "Give a version up to that");
    }
    State then = at(root, state, number, what);
    if (!then.topicId().equals(state.topicId())) {
      throw unreadable(root, topic, what, "it is of an earlier topic of this name, which was deleted",
          "Give a version that the table .commits shows");
    }
    return then;
  }

  private static State at(Root root, State newest, long number, String what) throws IOException {
    return root.topic(newest.topic())
        .at(newest, number)
        .orElseThrow(() -> unreadable(root, newest.topic(), what, "the files of this version were cleaned up",
            "Give a later version that the table .commits shows, or read by startingOffsets and endingOffsets"));
  }

  /** The state at the newest version that was written until then. @throws as {@link #version} */
  static State time(Root root, String topic, long micros) throws IOException {
    State state = root.state(topic);
    long millis = Math.floorDiv(micros, 1000);
    long[] lowest = {state.version()};
    Optional<Version> version = root.topic(topic).newest(state, each -> {
      lowest[0] = each.version();
      return each.head().time() <= millis;
    });
    String what = Instant.ofEpochMilli(millis).toString();
    long number = version.map(Version::version)
        .orElseThrow(() -> unreadable(root, topic, what, "the oldest version whose file is there, version " + lowest[0] + ", is younger",
            "Give a later time; the table .commits shows those of all versions"));
    return at(root, state, number, what);
  }

  /** The options that read the offsets of an earlier state. */
  static Map<String, String> bounds(State then) {
    StringJoiner partitions = new StringJoiner(",", "[", "]");
    List<String> starts = new ArrayList<>();
    List<String> ends = new ArrayList<>();
    for (int partition = 0; partition < then.partitions(); partition++) {
      starts.add("\"" + partition + "\":" + then.start(partition));
      ends.add("\"" + partition + "\":" + then.end(partition));
      partitions.add(Integer.toString(partition));
    }
    String topic = "{\"" + then.topic() + "\":";
    return Map.of("assign", topic + partitions + "}", "startingOffsets", topic + "{" + String.join(",", starts) + "}}", "endingOffsets",
        topic + "{" + String.join(",", ends) + "}}");
  }

  /** Refuses options that would read other offsets than the version has. @throws PartlogException OPTION_CONFLICT */
  static void requireNoBounds(CaseInsensitiveStringMap options) {
    BOUNDS.stream().filter(options::containsKey).findFirst().ifPresent(key -> {
      throw PartlogException.of("OPTION_CONFLICT", "options", "`" + key + "` and VERSION AS OF or TIMESTAMP AS OF", "reason",
          "a version says which offsets are read");
    });
  }

  private static PartlogException unreadable(Root root, String topic, String asked, String reason, String way) {
    return PartlogException.of("VERSION_UNREADABLE", "topic", topic, "root", root.location(), "asked", asked, "reason", reason, "way", way);
  }
}
