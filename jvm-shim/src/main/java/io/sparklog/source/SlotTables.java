package io.sparklog.source;

import io.sparklog.partition.SlotTable;
import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/**
 * The slot tables that scans of this JVM are grouped by, by name: the number of slots, and the CRC-32C of the table. A table is forgotten
 * when no plan has it any more. Another table of the same name is not taken until then, so a name never means two tables in a query.
 */
final class SlotTables {
  private static final Map<String, WeakReference<SlotTable>> TABLES = new HashMap<>();

  private SlotTables() {}

  /** {@code 4096_slots_1a2b3c4d} */
  static String name(SlotTable table) {
    return table.slots() + "_slots_" + String.format("%08x", table.crc());
  }

  /** The table of this name. The caller must keep it for as long as it uses the name. */
  static synchronized Optional<SlotTable> named(String name) {
    return Optional.ofNullable(TABLES.get(name)).map(WeakReference::get);
  }

  /** The one of all equal tables that has the name; empty if a table that is not equal has it. */
  static synchronized Optional<SlotTable> of(SlotTable table) {
    Optional<SlotTable> known = named(name(table));
    if (known.isEmpty()) {
      TABLES.values().removeIf(other -> other.get() == null);
      TABLES.put(name(table), new WeakReference<>(table));
      return Optional.of(table);
    }
    return known.filter(table::equals);
  }
}
