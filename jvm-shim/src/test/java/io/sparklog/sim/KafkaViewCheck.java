package io.sparklog.sim;

import io.sparklog.format.BatchHeader;
import io.sparklog.storage.FileAppender;
import io.sparklog.storage.LinkingStore;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeMap;
import java.util.TreeSet;

/** The Kafka view as FORMAT.md section 8 has it, made from the live segments by code of its own. */
final class KafkaViewCheck {
  private KafkaViewCheck() {}

  /** Every name and every byte of the view is right, and there is nothing else. Over a network there is no view. */
  static void requireRight(World world) {
    TreeMap<String, byte[]> expected = new TreeMap<>();
    Known top = world.truth.top();
    int interval = Integer.parseInt(world.config.get("index.interval.bytes"));
    for (Known.Segment segment : top.live().values()) {
      byte[] file = world.disk.peek(Truth.FOLDER + segment.file()).orElse(new byte[0]);
      if (file.length < segment.position() + segment.bytes()) {
        throw new Truth.Broken("I1: the bytes of " + segment + " are gone");
      }
      if (world.place.isFar()) {
        continue;
      }
      byte[] log = Arrays.copyOfRange(file, (int) segment.position(), (int) (segment.position() + segment.bytes()));
      String name = prefix(segment.partition(), segment.base());
      stampAndIndex(log, segment.base(), interval, name, expected);
      expected.put(name + ".log", log);
    }
    TreeMap<String, byte[]> found = new TreeMap<>();
    for (String folder : world.disk.filesIn("")) {
      if (folder.startsWith(Truth.TOPIC + "-")) {
        found.put(folder, world.disk.peek(folder).orElseThrow());
      }
    }
    TreeSet<String> differ = new TreeSet<>(found.keySet());
    differ.addAll(expected.keySet());
    differ.removeIf(name -> found.containsKey(name) && expected.containsKey(name));
    if (!differ.isEmpty()) {
      throw new Truth.Broken("view: either there and not live, or live and not there: " + differ);
    }
    expected.forEach((name, bytes) -> {
      if (!Arrays.equals(bytes, found.get(name))) {
        throw new Truth.Broken("view: " + name + " has other bytes");
      }
    });
  }

  /** A publisher that slept since long ago puts files of segments that are no longer live, and dies. */
  static void wakeAPublisher(World world, LinkingStore store) throws IOException {
    Known top = world.truth.top();
    TreeSet<String> names = new TreeSet<>();
    for (Known known : world.truth.versions()) {
      if (known.topicId().equals(top.topicId())) {
        known.json().path("added").forEach(added -> names.add(prefix(added.path("partition").asInt(), added.path("base").asLong())));
      }
    }
    TreeSet<String> live = new TreeSet<>();
    top.live().values().forEach(segment -> live.add(prefix(segment.partition(), segment.base())));
    for (String name : names) {
      String file = name + List.of(".index", ".timeindex", ".log").get(world.random.nextInt(3));
      // A shorter segment that has become a part of a live one has the same name, and shorter indexes.
      if (!live.contains(name)) {
        put(store, file, new byte[100]);
      } else if (!file.endsWith(".log") && world.disk.peek(file).orElseThrow().length > 0) {
        store.delete(file);
        put(store, file, new byte[0]);
      }
    }
  }

  private static void put(LinkingStore store, String name, byte[] bytes) throws IOException {
    try (FileAppender file = store.create(name)) {
      file.write(bytes, 0, bytes.length);
    }
  }

  private static String prefix(int partition, long base) {
    return Truth.TOPIC + "-" + partition + "/" + String.format("%020d", base);
  }

  private static void stampAndIndex(byte[] log, long base, int interval, String name, TreeMap<String, byte[]> to) {
    List<byte[]> index = new ArrayList<>();
    List<byte[]> times = new ArrayList<>();
    long next = base;
    int last = 0;
    long indexed = -1;
    long greatest = -1;
    long greatestAt = 0;
    for (int at = 0; at < log.length; at += BatchHeader.totalBytes(log, at)) {
      BatchHeader.setBaseOffset(log, at, next);
      next += BatchHeader.count(log, at);
      if (BatchHeader.maxTimestamp(log, at) > greatest) {
        greatest = BatchHeader.maxTimestamp(log, at);
        greatestAt = next - 1;
      }
      if (at - last > interval) {
        index.add(ByteBuffer.allocate(8).putInt((int) (next - 1 - base)).putInt(at).array());
        last = at;
        if (greatest > indexed) {
          times.add(ByteBuffer.allocate(12).putLong(greatest).putInt((int) (greatestAt - base)).array());
          indexed = greatest;
        }
      }
    }
    if (greatest > indexed) {
      times.add(ByteBuffer.allocate(12).putLong(greatest).putInt((int) (greatestAt - base)).array());
    }
    to.put(name + ".index", joined(index));
    to.put(name + ".timeindex", joined(times));
  }

  private static byte[] joined(List<byte[]> parts) {
    ByteBuffer all = ByteBuffer.allocate(parts.stream().mapToInt(part -> part.length).sum());
    parts.forEach(all::put);
    return all.array();
  }
}
