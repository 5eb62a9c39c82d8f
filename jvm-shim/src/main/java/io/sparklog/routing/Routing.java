package io.sparklog.routing;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/** How a topic routes keys at one version, and how it did for the records that it still has. FORMAT.md annex A. */
public final class Routing {
  /** The most numbers in the re-routes of a state. FORMAT.md annex A. */
  private static final int NUMBERS_MAX = 2_000_000;

  private final int epoch;
  private final int[] weights;
  /** Before the oldest of {@link #past}. */
  private final SlotTable first;
  private final SlotTable table;
  private final List<PastReroute> past;
  private final long numbers;
  private KeyHistory history;
  private List<Map<Integer, Set<Integer>>> givers;

  /** @param numbers of all of {@code past} */
  private Routing(int epoch, int[] weights, SlotTable first, SlotTable table, List<PastReroute> past, long numbers) {
    this.epoch = epoch;
    this.weights = weights;
    this.first = first;
    this.table = table;
    this.past = Collections.unmodifiableList(past);
    this.numbers = numbers;
  }

  /** The routing of a topic without slots. Its table has the slots that the first re-route gives the topic. */
  public static Routing modulo(int partitions) {
    return beginning(partitions, SlotTable.modulo(partitions));
  }

  /** That of a topic that begins, whose slots have the partitions of {@code table}. */
  public static Routing beginning(int partitions, SlotTable table) {
    int[] equal = new int[partitions];
    Arrays.fill(equal, 1);
    return new Routing(0, equal, table, table, List.of(), 0);
  }

  /** The routing epoch: how many re-routes the topic has had. */
  public int epoch() {
    return epoch;
  }

  /** By partition; a partition of weight 0 is closed. */
  public int[] weights() {
    return weights.clone();
  }

  public SlotTable table() {
    return table;
  }

  /** Whether the topic has no slots: the partition of a key is its hash modulo the number of partitions. */
  public boolean isModulo() {
    return table.isModulo();
  }

  /** The re-routes that have records from before them, from old to new. */
  public List<PastReroute> past() {
    return past;
  }

  /** @param bindsSlots whether a slot gets its partition when a key of it is first written */
  public Router router(Partitioner partitioner, boolean bindsSlots) {
    return new Router(partitioner, bindsSlots, epoch, table, weights);
  }

  /** How many of {@link #past} an offset of a partition comes after. */
  public int after(int partition, long offset) {
    int low = 0;
    int high = past.size();
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (past.get(middle).cut(partition) <= offset) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /** The routing epochs of the offsets [{@code start}, {@code end}) of a partition. */
  public RoutingEpochs epochs(int partition, long start, long end) {
    int oldest = epoch - past.size();
    int before = after(partition, start);
    SortedMap<Long, Integer> rises = new TreeMap<>();
    for (int i = before; i < past.size() && past.get(i).cut(partition) < end; i++) {
      rises.put(past.get(i).cut(partition), oldest + i + 1);
    }
    return new RoutingEpochs(oldest + before, rises.keySet().stream().mapToLong(Long::longValue).toArray(),
        rises.values().stream().mapToInt(Integer::intValue).toArray());
  }

  /** Where keys belong after the first {@code after} re-routes of {@link #past}. */
  public SlotTable table(int after) {
    try {
      return moved(first, past.subList(0, after));
    } catch (Damaged e) {
      throw new IllegalStateException(e); // They were looked at when they were read.
    }
  }

  /** The slot table after these re-routes, one after another. It is copied once for all of them. */
  private static SlotTable moved(SlotTable from, List<PastReroute> reroutes) throws Damaged {
    if (reroutes.isEmpty()) {
      return from;
    }
    int[] slots = from.partitions();
    for (PastReroute reroute : reroutes) {
      for (SlotTable.SlotMoves moves : reroute.moved()) {
        for (int slot : moves.slots()) {
          Damaged.unless(slots[slot] != SlotTable.UNBOUND, () -> "it moves slot " + slot + ", which has no partition");
          Damaged.unless(slots[slot] != moves.to(), () -> "slot " + slot + " is in partition " + moves.to() + " already");
          slots[slot] = moves.to();
        }
      }
    }
    return SlotTable.of(slots);
  }

  /** The partition that a key had after the first {@code after} re-routes of {@link #past}. */
  public int partition(Partitioner partitioner, byte[] key, int after) {
    if (past.isEmpty()) {
      return table.partition(partitioner, key);
    }
    synchronized (this) {
      history = history == null ? new KeyHistory(first, past) : history;
    }
    return history.partition(partitioner, key, after);
  }

  /** Whether the state may have this re-route too. */
  public boolean fits(int partitions, List<SlotTable.SlotMoves> moved) {
    return numbers + new PastReroute(0, new long[partitions], moved).numbers() <= NUMBERS_MAX;
  }

  /** The field of the version that moves these slots. */
  public RoutingChange.Reroute reroute(int[] weights, List<SlotTable.SlotMoves> moved) {
    return new RoutingChange.Reroute(epoch + 1, table.slots(), weights, moved, table.after(moved).crc());
  }

  /** The field of the version that gives partitions to slots that have none. */
  public RoutingChange.Binding binding(List<SlotTable.SlotMoves> bound) {
    return new RoutingChange.Binding(bound, table.after(bound).crc());
  }

  /** The routing after a version. @param ends of the partitions before it; with 0 for partitions that it adds */
  public Routing after(RoutingChange change, long version, long[] ends) throws Damaged {
    int partitions = weights.length;
    if (change instanceof RoutingChange.Reroute reroute) {
      requireWeights(reroute.weights(), ends.length);
      Damaged.unless(!isModulo() || reroute.slots() % partitions == 0, "its slots are no multiple of " + partitions + " partitions");
      return (isModulo() ? beginning(partitions, SlotTable.modulo(partitions, reroute.slots())) : this).rerouted(reroute, version, ends);
    }
    Damaged.unless(!isModulo() && ends.length == partitions, "it binds slots, and adds partitions or is of a topic without slots");
    return bound(change);
  }

  private Routing rerouted(RoutingChange.Reroute reroute, long version, long[] ends) throws Damaged {
    Damaged.unless(reroute.epoch() == epoch + 1 && reroute.slots() == table.slots(),
        "its routing epoch or its number of slots does not follow those of the version before it");
    for (int p = 0; p < weights.length; p++) {
      Damaged.unless(weights[p] > 0 || reroute.weights()[p] == 0, "it opens partition " + p + ", which is closed");
    }
    PastReroute last = new PastReroute(version, cut(reroute.moved(), ends), reroute.moved());
    SlotTable moved = moved(table, List.of(last));
    requireTable(moved, reroute.weights(), reroute.table());
    List<PastReroute> all = new ArrayList<>(past);
    all.add(last);
    return new Routing(reroute.epoch(), reroute.weights(), first, moved, all, fitting(numbers + last.numbers()));
  }

  /** A partition that neither gives nor gets slots keeps the cut that it had. @param ends of the partitions before the re-route */
  private long[] cut(List<SlotTable.SlotMoves> moved, long[] ends) {
    long[] cut = new long[ends.length];
    for (int p = 0; p < ends.length && !past.isEmpty(); p++) {
      cut[p] = past.get(past.size() - 1).cut(p);
    }
    givers(table::partition, moved).forEach((to, givers) -> {
      cut[to] = ends[to];
      givers.forEach(from -> cut[from] = ends[from]);
    });
    return cut;
  }

  /** By partition that takes slots of a table, the partitions that give them. Slots without a partition are left out. */
  private static Map<Integer, Set<Integer>> givers(IntUnaryOperator before, List<SlotTable.SlotMoves> moved) {
    Map<Integer, Set<Integer>> givers = new HashMap<>();
    for (SlotTable.SlotMoves moves : moved) {
      Set<Integer> found = givers.computeIfAbsent(moves.to(), first -> new HashSet<>());
      Arrays.stream(moves.slots()).map(before).filter(from -> from != SlotTable.UNBOUND).forEach(found::add);
    }
    return givers;
  }

  /** The newest re-route that gave slots to, or took slots from, every open partition. */
  public Optional<PastReroute> lastOfAll() {
    for (int i = past.size() - 1; i >= 0; i--) {
      Set<Integer> concerned = new HashSet<>();
      givers().get(i).forEach((to, from) -> {
        concerned.add(to);
        concerned.addAll(from);
      });
      if (IntStream.range(0, weights.length).allMatch(p -> weights[p] == 0 || concerned.contains(p))) {
        return Optional.of(past.get(i));
      }
    }
    return Optional.empty();
  }

  /** For each of {@link #past}, the partitions that gave slots, by the partition that took them. */
  public synchronized List<Map<Integer, Set<Integer>>> givers() {
    if (past.isEmpty()) {
      return List.of();
    }
    if (givers == null) {
      List<Map<Integer, Set<Integer>>> all = new ArrayList<>();
      int[] homes = first.partitions();
      for (PastReroute reroute : past) {
        all.add(givers(slot -> homes[slot], reroute.moved()));
        reroute.moved().forEach(moves -> Arrays.stream(moves.slots()).forEach(slot -> homes[slot] = moves.to()));
      }
      givers = all;
    }
    return givers;
  }

  /** A bound slot counts as if it had always been bound: it does not have older records. */
  public Routing bound(RoutingChange binding) throws Damaged {
    for (SlotTable.SlotMoves moves : binding.moved()) {
      for (int slot : moves.slots()) {
        Damaged.unless(slot < table.slots() && table.partition(slot) == SlotTable.UNBOUND,
            "it binds slot " + slot + ", which has a partition or does not exist");
      }
    }
    SlotTable bound = table.after(binding.moved());
    requireTable(bound, weights, binding.table());
    return new Routing(epoch, weights, past.isEmpty() ? bound : first.after(binding.moved()), bound, past, numbers);
  }

  private static void requireWeights(int[] weights, int partitions) throws Damaged {
    Damaged.unless(weights.length == partitions, () -> "it has " + weights.length + " weights, and " + partitions + " partitions");
  }

  private static void requireTable(SlotTable table, int[] weights, int crc) throws Damaged {
    requireOpen(table, weights);
    Damaged.unless(table.crc() == crc, "its slot table is not that of its checksum");
  }

  private static long fitting(long numbers) throws Damaged {
    Damaged.unless(numbers <= NUMBERS_MAX, "its re-routes have " + numbers + " numbers, more than " + NUMBERS_MAX);
    return numbers;
  }

  private static void requireOpen(SlotTable table, int[] weights) throws Damaged {
    int[] counts = table.counts(Router.PARTITIONS_MAX);
    for (int p = 0; p < counts.length; p++) {
      if (counts[p] > 0 && (p >= weights.length || weights[p] == 0)) {
        throw new Damaged("partition " + p + " has slots, and is closed or not there");
      }
    }
  }

  /** Without the oldest re-routes that no record is from before. @param starts log start offsets by partition */
  public Routing since(long[] starts) {
    int gone = 0;
    while (gone < past.size() && isBelow(past.get(gone).cut(), starts)) {
      gone++;
    }
    if (gone == 0) {
      return this;
    }
    SlotTable oldest = table(gone);
    long left = numbers - past.subList(0, gone).stream().mapToLong(PastReroute::numbers).sum();
    return new Routing(epoch, weights, oldest, table, new ArrayList<>(past.subList(gone, past.size())), left);
  }

  private static boolean isBelow(long[] cut, long[] starts) {
    for (int p = 0; p < cut.length; p++) {
      if (cut[p] > starts[p]) {
        return false;
      }
    }
    return true;
  }

  /** Whether this routing of a checkpoint agrees with the change that the checkpoint's own version made. */
  public boolean agreesWith(RoutingChange change) {
    boolean isSame = !(change instanceof RoutingChange.Reroute reroute)
        || reroute.epoch() == epoch && reroute.slots() == table.slots() && Arrays.equals(reroute.weights(), weights);
    return isSame && table.crc() == change.table();
  }

  /** As a checkpoint has it. FORMAT.md section A.4. */
  public ObjectNode toJson() {
    ObjectNode json = Json.MAPPER.createObjectNode();
    json.put("epoch", epoch).put("slots", first.slots()).set("weights", Json.array(weights));
    ArrayNode slots = json.putArray("first");
    for (int slot = 0; slot < first.slots(); slot++) {
      slots.add(first.partition(slot));
    }
    ArrayNode reroutes = json.putArray("reroutes");
    for (PastReroute reroute : past) {
      ObjectNode entry = reroutes.addObject().put("version", reroute.version());
      ArrayNode cut = entry.putArray("cut");
      Arrays.stream(reroute.cut()).forEach(cut::add);
      entry.set("moved", RoutingChange.toJson(reroute.moved()));
    }
    return json.put("table", Integer.toUnsignedLong(table.crc()));
  }

  /**
   * @param ends of the state, which has this version
   * @param unbound whether there may be slots without a partition
   */
  public static Routing parse(JsonNode json, long version, long[] ends, boolean unbound) throws Damaged {
    int epoch = (int) Json.number(Json.field(json, "epoch"), "epoch", 0, Integer.MAX_VALUE);
    int slots = (int) Json.number(Json.field(json, "slots"), "slots", 1, SlotTable.SLOTS_MAX);
    int[] weights = RoutingChange.weights(json);
    requireWeights(weights, ends.length);
    int[] partitions = Json.ints(json, "first", slots, unbound ? SlotTable.UNBOUND : ends.length - 1);
    Damaged.unless(Arrays.stream(partitions).allMatch(p -> p < ends.length || p == SlotTable.UNBOUND),
        "its first slot table names more than " + ends.length + " partitions");
    Damaged.unless(partitions.length == slots, "its first slot table has " + partitions.length + " of " + slots + " slots");
    List<PastReroute> past = new ArrayList<>();
    PastReroute last = new PastReroute(-1, new long[0], List.of());
    for (JsonNode entry : Json.array(json, "reroutes", NUMBERS_MAX)) {
      long[] cut = Json.numbers(entry, "cut", ends.length);
      PastReroute reroute = new PastReroute(Json.number(Json.field(entry, "version"), "version", last.version() + 1, version), cut,
          RoutingChange.moved(entry, slots, cut.length));
      requireRisen(last, cut);
      past.add(reroute);
      last = reroute;
    }
    requireRisen(last, ends);
    SlotTable first = SlotTable.of(partitions);
    SlotTable table = moved(first, past);
    requireTable(table, weights, RoutingChange.table(json));
    Damaged.unless(past.size() <= epoch, "it has had " + epoch + " re-routes, and has " + past.size());
    return new Routing(epoch, weights, first, table, past, fitting(past.stream().mapToLong(PastReroute::numbers).sum()));
  }

  private static void requireRisen(PastReroute before, long[] ends) throws Damaged {
    for (int p = 0; p < before.cut().length; p++) {
      Damaged.unless(p < ends.length && before.cut()[p] <= ends[p], "the cut of partition " + p + " falls");
    }
  }

  @Override
  public String toString() {
    return table + " in routing epoch " + epoch;
  }

  /**
   * The routing epochs of a range of offsets of a partition. FORMAT.md section A.3.
   *
   * @param first the routing epoch of the first offset
   * @param rises the offsets in the range that have a higher routing epoch than the offset before them, ascending
   * @param risen the routing epoch from each of {@code rises} on
   */
  public record RoutingEpochs(int first, long[] rises, int[] risen) implements Serializable {
    /** The routing epoch of an offset of the range. */
    public int at(long offset) {
      if (rises.length == 0 || offset < rises[0]) {
        return first;
      }
      int found = Arrays.binarySearch(rises, offset);
      return risen[found >= 0 ? found : -found - 2];
    }
  }
}
