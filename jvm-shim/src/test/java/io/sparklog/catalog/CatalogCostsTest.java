package io.sparklog.catalog;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.OpenRoots;
import io.sparklog.log.Root;
import io.sparklog.segment.Names;
import io.sparklog.storage.FaultyStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.ThrowingSupplier;
import org.junit.jupiter.api.io.TempDir;

/** The calls of a store that a statement about one topic makes do not depend on how many others the root has. */
final class CatalogCostsTest {
  /** Calls that look at no file. */
  private static final Set<String> FREE = Set.of("location", "root", "identity", "ref", "isRemote", "hasFolders");

  private static final Identifier ORDERS = Identifier.of(new String[] {"topics"}, "orders");

  @TempDir
  Path folder;

  /** A catalog over a root with topic {@code orders} and others, and the calls that its statements make. */
  private static final class Counted {
    private final FaultyStore store;
    private final PartlogCatalog catalog = new PartlogCatalog();
    private final TreeMap<String, List<String>> calls = new TreeMap<>();

    /** Kept, so that the root of this place stays the one over {@code store}. */
    private final Root root;

    Counted(Path place, int others) throws IOException {
      WrittenTopic orders = new WrittenTopic(place, "orders");
      orders.segment(0, 4).segment(1, 2).commit().segment(2, 3).commit();
      for (int other = 0; other < others; other++) {
        Path topic = place.resolve(Names.topicFolder("other" + other));
        Files.createDirectories(topic);
        Files.createFile(topic.resolve(Names.versionFile(0))); // Listings go by names.
      }
      store = FaultyStore.of(orders.store);
      root = OpenRoots.over(store.store());
      catalog.initialize("events", new CaseInsensitiveStringMap(Map.of("root", place.toString())));
    }

    void count(String statement, ThrowingSupplier<Object> act) throws Throwable {
      store.calls().clear();
      assertNotNull(act.get(), statement);
      calls.put(statement, store.calls().stream().filter(call -> !FREE.contains(call.split(" ")[0])).map(Counted::plain).sorted().toList());
    }

    /** Without the identities of writes, which are random, and what is in their order. */
    private static String plain(String call) {
      return call.replaceAll("data/[0-9]{20}-[A-Za-z0-9_-]{22}", "data/…")
          .replaceAll("checkpoint-[0-9a-f]{16}", "checkpoint")
          .replaceAll("deleteAll .*", "deleteAll");
    }

    private static Object read(SupportsRead table) {
      return table.newScanBuilder(CaseInsensitiveStringMap.empty()).build().toBatch().planInputPartitions();
    }

    private static TableInfo info() {
      return new TableInfo.Builder().withColumns(new org.apache.spark.sql.connector.catalog.Column[0]).withProperties(Map.of()).build();
    }

    TreeMap<String, List<String>> all() throws Throwable {
      count("a first look", () -> catalog.loadTable(ORDERS));
      count("loadTable", () -> catalog.loadTable(ORDERS));
      count("loadTable by a short name", () -> catalog.loadTable(Identifier.of(new String[0], "orders")));
      count("loadTable of what is not there",
          () -> assertThrows(NoSuchTableException.class, () -> catalog.loadTable(Identifier.of(new String[0], "nothing"))));
      count("tableExists", () -> catalog.tableExists(ORDERS));
      count("tableExists of what is not there", () -> catalog.tableExists(Identifier.of(new String[0], "nothing")));
      count("namespaceExists", () -> catalog.namespaceExists(new String[] {"orders"}));
      count("listTables of a topic", () -> catalog.listTables(new String[] {"orders"}));
      count("VERSION AS OF", () -> catalog.loadTable(ORDERS, "0"));
      count("TIMESTAMP AS OF", () -> catalog.loadTable(ORDERS, Long.MAX_VALUE));
      count("a read", () -> read((SupportsRead) catalog.loadTable(ORDERS)));
      count("a read of a version", () -> read((SupportsRead) catalog.loadTable(ORDERS, "0")));
      for (String about : TopicInfo.NAMES) {
        Identifier table = Identifier.of(new String[] {"topics", "orders"}, about);
        count("." + about, () -> ((SupportsRead) catalog.loadTable(table)).newScanBuilder(CaseInsensitiveStringMap.empty()).build());
      }
      count("CREATE TABLE", () -> catalog.createTable(Identifier.of(new String[0], "made"), info()));
      count("ALTER TABLE", () -> catalog.alterTable(ORDERS, TableChange.setProperty("retention.ms", "1000000000000")));
      count("TRUNCATE", () -> ((TopicTable) catalog.loadTable(ORDERS)).truncateTable());
      count("DROP TABLE", () -> catalog.dropTable(ORDERS));
      return calls;
    }

    int topics() throws Throwable {
      return catalog.listTables(new String[] {"topics"}).length;
    }
  }

  @Test
  void aStatementAboutOneTopicCostsTheSameInALargeRoot() throws Throwable {
    Counted small = new Counted(folder.resolve("small"), 3);
    Counted large = new Counted(folder.resolve("large"), 1000);
    TreeMap<String, List<String>> few = small.all();
    TreeMap<String, List<String>> many = large.all();
    few.forEach((statement, calls) -> assertEquals(calls, many.get(statement), statement));
    assertEquals(4, small.topics());
    assertEquals(1001, large.topics());
    List<String> listings = new ArrayList<>();
    many.forEach((statement, calls) -> calls.stream()
        .filter(call -> call.toLowerCase(Locale.ROOT).startsWith("list") && call.endsWith(" " + Names.FOLDER))
        .forEach(call -> listings.add(statement + ": " + call)));
    assertEquals(List.of(), listings);
    assertTrue(many.get("loadTable").size() <= 3, many.get("loadTable").toString());
    assertTrue(many.get("a first look").size() <= 12, many.get("a first look").toString());
  }
}
