package io.sparklog.sim;

import com.fasterxml.jackson.databind.JsonNode;
import io.sparklog.log.State;
import io.sparklog.routing.Partitioner;
import io.sparklog.routing.SlotTable;
import io.sparklog.sim.Truth.Broken;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;

/** Where records with keys belong, in a world whose slots are bound when they are first written; by the version files alone. */
final class Homes {
  private static final int NONE = -1;
  private static final SlotTable SLOTS = SlotTable.unbound(1 << 16);

  /** A slot got a partition in a version: its first one, or by a re-route. */
  private record Move(long version, int to, boolean binds) {}

  private Homes() {}

  /** The name of a record that is written by a key. There are new keys all the time, which writers meet at about the same time. */
  static String keyed(World world, String name) {
    return "k" + (world.nowMs() / 2_000 * 4 + world.random.nextInt(4)) + "@" + name;
  }

  static boolean isKeyed(String record) {
    return record.indexOf('@') > 0;
  }

  static byte[] key(String record) {
    return record.substring(0, record.indexOf('@')).getBytes(StandardCharsets.UTF_8);
  }

  /** By slot, what the versions up to one say of it. */
  private static TreeMap<Integer, List<Move>> moves(List<Known> versions, Known until) {
    TreeMap<Integer, List<Move>> moves = new TreeMap<>();
    for (Known known : versions) {
      JsonNode routing = known.json().path("routing");
      if (known.version() > until.version() || !known.topicId().equals(until.topicId())) {
        continue;
      }
      boolean binds = routing.has("binds") || routing.path("epoch").asInt() == 0;
      for (JsonNode entry : routing.path("moved")) {
        for (int i = 1; i < entry.size(); i++) {
          List<Move> its = moves.computeIfAbsent(entry.get(i).asInt(), absent -> new ArrayList<>());
          if (binds != its.isEmpty()) {
            throw new Broken("I5: version " + known.version() + (binds ? " binds" : " moves") + " slot " + entry.get(i) + " after " + its);
          }
          its.add(new Move(known.version(), entry.get(0).asInt(), binds));
        }
      }
    }
    return moves;
  }

  private static int last(List<Move> moves, long before) {
    return moves.stream().filter(move -> move.binds() || move.version() < before).reduce((one, other) -> other).map(Move::to).orElse(NONE);
  }

  /** The records of keys that a version adds lie where their keys belong after it. @param versions with it */
  static void requireRouted(List<Known> versions, Known version, int partition, List<String> records) {
    List<String> keyed = records.stream().filter(Homes::isKeyed).toList();
    TreeMap<Integer, List<Move>> moves = keyed.isEmpty() ? new TreeMap<>() : moves(versions, version);
    for (String record : keyed) {
      int home = last(moves.getOrDefault(SLOTS.slot(Partitioner.MURMUR3, key(record)), List.of()), Long.MAX_VALUE);
      if (home != partition) {
        throw new Broken(
            "I5: version " + version.version() + " adds " + record + " to partition " + partition + ", and its home is " + home);
      }
    }
  }

  /** A state knows where each slot was before and after each of its re-routes. */
  static void requireKnown(List<Known> versions, State state, Known version) {
    if (!state.config().bindsSlots()) {
      return;
    }
    TreeMap<Integer, List<Move>> moves = moves(versions, version);
    for (int after = 0; after <= state.routing().past().size(); after++) {
      long before = after < state.routing().past().size() ? state.routing().past().get(after).version() : Long.MAX_VALUE;
      SlotTable table = state.routing().table(after);
      String of = "I5: a snapshot at version " + state.version() + " after " + after + " re-routes has slot ";
      moves.forEach((slot, its) -> {
        if (table.partition(slot) != last(its, before)) {
          throw new Broken(of + slot + " in partition " + table.partition(slot) + ": " + its);
        }
      });
    }
  }
}
