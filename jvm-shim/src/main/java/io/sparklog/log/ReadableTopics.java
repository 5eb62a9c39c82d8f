package io.sparklog.log;

import io.sparklog.format.OffsetIndex;
import io.sparklog.segment.Extent;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFile;
import io.sparklog.segment.SegmentFiles;
import io.sparklog.segment.SegmentGone;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.io.Serializable;
import java.time.Clock;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Topics that can be read, in any place and layout. Reading and streaming know a place only by this interface. {@link Root} has the topics
 * of this format.
 */
public interface ReadableTopics {
  /** The topic in which a server for Kafka's clients keeps their groups. */
  String GROUPS = "__consumer_offsets";

  /** Opens the same topics in another process. Equal references are to the same topics. */
  interface Reference extends Serializable {
    /** @throws PartlogException what opening them in the first process can throw */
    ReadableTopics open();
  }

  /** A reference from which a task opens them: sent to it, as these topics themselves cannot be. */
  Reference reference();

  /** The full name of the place, which messages call the root. */
  String location();

  /** Whether each read of a file takes a request to a server, and Spark counts the bytes that are read without being told of them. */
  default boolean isRemote() {
    return false;
  }

  /**
   * Whether a read may begin.
   *
   * @throws PartlogException if the place does not exist, or is of another kind
   */
  void requireReadable();

  /** The names of the topics that exist. One that is deleted at this moment may be among them. */
  List<String> topics();

  /** The names of {@link #topics}, and maybe names that {@link #newest} finds no topic of: for a caller that asks for the states next. */
  default List<String> candidates() {
    return topics();
  }

  /** Like {@link #topics}, at most a second old: for a running query, which asks again and again. */
  List<String> recentTopics(Clock clock);

  /**
   * The newest state of a topic; empty if it does not exist. The same object for as long as nothing changes.
   *
   * @throws PartlogException TOPIC_NAME_ILLEGAL, and what loading a state throws
   */
  Optional<State> newest(String topic);

  /**
   * The newest states of the topics that exist among {@code names}, by name. They are asked for at once where that takes requests.
   *
   * @throws PartlogException of the first name that {@link #newest(String)} fails for
   */
  default Map<String, State> newest(Collection<String> names) {
    Map<String, State> states = new HashMap<>();
    names.forEach(name -> newest(name).ifPresent(state -> states.put(name, state)));
    return states;
  }

  /**
   * Runs a task as soon as somebody commits to a topic, and maybe without need. The task must not block. It ends when its owner drops it,
   * or when the topic is deleted.
   *
   * @return whether each commit is seen; false where a caller must look by itself
   */
  default boolean watch(String topic, Runnable task) {
    return false;
  }

  /** Opens a live segment of a topic. @throws SegmentGone if its file is gone; over a network, the first read throws it */
  SegmentFile open(String topic, Segment segment) throws IOException;

  /** Opens live segments of a topic, for a caller that reads these extents one after another, and closes this in the end. */
  default SegmentFiles open(String topic, List<Extent> extents) {
    return extent -> open(topic, extent.segment());
  }

  /** The index of a segment; empty without an index. It is a hint: a reader proves each entry. */
  Optional<OffsetIndex> index(String topic, Segment segment);

  /** TOPIC_NOT_FOUND, which lists the existing topics. */
  default PartlogException notFound(String topic) {
    List<String> existing = topics();
    return PartlogException.of("TOPIC_NOT_FOUND", "topic", topic, "root", location(), "topics",
        existing.isEmpty() ? "none" : String.join(", ", existing));
  }

  /** Refuses {@link #GROUPS}: to its server, records of other programs would be groups. @throws PartlogException TOPIC_OF_SERVER */
  static void requireOfPrograms(String topic, String root) {
    if (topic.equals(GROUPS)) {
      throw PartlogException.of("TOPIC_OF_SERVER", "topic", topic, "root", root);
    }
  }

  /** Names of topics follow Kafka's rules, in every place. @throws PartlogException TOPIC_NAME_ILLEGAL */
  static void requireLegal(String topic) {
    Names.illegalTopic(topic).ifPresent(reason -> {
      String shown = topic.length() > 80 ? topic.substring(0, 80) + "…" : topic;
      throw PartlogException.of("TOPIC_NAME_ILLEGAL", "topic", "'" + shown + "'", "reason", reason);
    });
  }
}
