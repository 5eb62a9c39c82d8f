package io.sparklog.kit;

import io.sparklog.admin.Administration;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.Names;
import io.sparklog.transfer.Rebuild;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;

/** {@code LogTool change}: one change of an operator. @param arguments of {@link LogTool} */
record Operator(Root root, TopicLog log, Clock clock, Map<String, String> arguments) {
  private String text(String key, String otherwise) {
    return arguments.getOrDefault(key, otherwise);
  }

  private int number(String key, int otherwise) {
    return Integer.parseInt(text(key, Integer.toString(otherwise)));
  }

  private TreeMap<Integer, Long> byPartition(String argument) {
    TreeMap<Integer, Long> numbers = new TreeMap<>();
    for (String each : text(argument, null).split(",")) {
      numbers.put(Integer.valueOf(each.split(":")[0]), Long.valueOf(each.split(":")[1]));
    }
    return numbers;
  }

  private List<byte[]> keys() {
    return Arrays.stream(text("keys", null).split(",")).map(key -> key.getBytes(StandardCharsets.UTF_8)).toList();
  }

  /** Does what the argument {@code what} says. */
  void change() throws IOException {
    Administration administration = new Administration(new TopicWork(log, clock, new Random()));
    Administration.RerouteTime when = Administration.RerouteTime.valueOf(text("when", "NOW"));
    switch (text("what", null)) {
      case "records" -> administration.deleteRecords(byPartition("offsets"), new TreeMap<>(), false);
      case "partitions" -> administration.addPartitions(number("to", 0), when, false);
      case "close" -> administration.closePartitions(byPartition("partitions").keySet(), when, false);
      case "rebuild" -> Rebuild.planned(root, log.topic(), text("into", null), number("to", 0)).run(1 << 14, 1 << 20, clock, new Random());
      case "weights" -> administration.reroute(byPartition("weights"), when, false);
      case "keys" -> {
        State state = log.newest().orElseThrow();
        TreeMap<Integer, Integer> moves = new TreeMap<>();
        keys().forEach(key -> moves.put(state.routing().table().slot(state.config().partitioner(), key), number("to", 0)));
        administration.move(state, moves, false);
      }
      case "config" -> {
        TreeMap<String, String> config = new TreeMap<>(arguments);
        config.keySet().removeAll(Set.of("root", "topic", "what", "clock"));
        administration.configure(config);
      }
      case "create" -> {
        TreeMap<String, String> config = Writes.config();
        config.replaceAll(this::text);
        root.prepare();
        administration.create(TopicConfig.of(config), Names.identity(new Random()));
      }
      default -> administration.delete(false);
    }
  }
}
