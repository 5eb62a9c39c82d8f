package io.sparklog.kit;

import io.sparklog.format.OffsetIndex;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFile;
import io.sparklog.segment.SegmentGone;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FileReader;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** Topics of another kind: there is no root and no file, and the bytes of segments and indexes are held in memory, by names of its own. */
public final class HeldTopics implements ReadableTopics {
  private static final List<HeldTopics> ALL = new ArrayList<>();

  /** A topic at one time. */
  public record Held(State state, Map<String, byte[]> bytes) {}

  private record Number(int number) implements Reference {
    @Override
    public ReadableTopics open() {
      return ALL.get(number);
    }
  }

  private final int number = ALL.size();
  private final TreeMap<String, Held> topics = new TreeMap<>();

  /** How many segments, and how many indexes, were opened. */
  public int opened;
  public int indexes;

  public HeldTopics() {
    ALL.add(this);
  }

  /** A copy of a topic as it is now. */
  public static Held copy(WrittenTopic topic) throws IOException {
    State state = topic.root.state(topic.topic);
    Map<String, byte[]> bytes = new HashMap<>();
    for (int p = 0; p < state.partitions(); p++) {
      for (int n = 0; n < state.segments(p).size(); n++) {
        String name = name(state.segments(p).get(n));
        bytes.put(name, Files.readAllBytes(topic.dataFile(p, n)));
        if (Files.exists(topic.viewFile(p, n, "index"))) {
          bytes.put("index of " + name, Files.readAllBytes(topic.viewFile(p, n, "index")));
        }
      }
    }
    return new Held(state, bytes);
  }

  private static String name(Segment segment) {
    return segment.file().replace('/', '*') + " in memory";
  }

  /** From now on, a topic is this, and nothing else of it is there. */
  public HeldTopics hold(Held held) {
    topics.put(held.state().topic(), held);
    return this;
  }

  @Override
  public Reference reference() {
    return new Number(number);
  }

  @Override
  public String location() {
    return "memory " + number;
  }

  @Override
  public void requireReadable() {
    if (topics.isEmpty()) {
      throw PartlogException.of("ROOT_NOT_FOUND", "root", location());
    }
  }

  @Override
  public List<String> topics() {
    return List.copyOf(topics.keySet());
  }

  @Override
  public List<String> recentTopics(Clock clock) {
    return topics();
  }

  @Override
  public Optional<State> newest(String topic) {
    return Optional.ofNullable(topics.get(topic)).map(Held::state);
  }

  @Override
  public SegmentFile open(String topic, Segment segment) throws IOException {
    opened++;
    String location = location() + ": " + topic + ", " + name(segment);
    byte[] bytes = topics.containsKey(topic) ? topics.get(topic).bytes().get(name(segment)) : null;
    if (bytes == null) {
      throw new SegmentGone(topic, segment, location, new NoSuchFileException(location));
    }
    return new SegmentFile(topic, segment, location, new Reader(location, bytes));
  }

  @Override
  public Optional<OffsetIndex> index(String topic, Segment segment) {
    indexes++;
    return Optional.ofNullable(topics.get(topic).bytes().get("index of " + name(segment)))
        .map(bytes -> new OffsetIndex(bytes, segment.base()));
  }

  private record Reader(String location, byte[] held) implements FileReader {
    @Override
    public long bytes() {
      return held.length;
    }

    @Override
    public void read(long position, ByteBuffer to) throws IOException {
      if (position + to.remaining() > held.length) {
        throw new EOFException("it ends at byte " + held.length);
      }
      to.put(held, (int) position, to.remaining());
    }

    @Override
    public void close() {}
  }
}
