package io.sparklog.catalog;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.WrittenTopic;
import io.sparklog.spec.PartlogException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A topic as a table of a catalog. */
final class TopicTableTest {
  private static final Identifier NAME = Identifier.of(new String[] {"topics"}, "t");

  @TempDir
  Path directory;

  private PartlogCatalog catalog() {
    PartlogCatalog catalog = new PartlogCatalog();
    catalog.initialize("events", new CaseInsensitiveStringMap(Map.of("root", directory.toString())));
    return catalog;
  }

  /** Another session drops the topic, and creates another one. */
  private void replace() throws Exception {
    catalog().dropTable(NAME);
    catalog().createTable(NAME, new TableInfo.Builder().withColumns(new Column[0]).withProperties(Map.of()).build());
  }

  @Test
  void recordsOfATopicThatTookTheNameAreNotDeleted() throws Exception {
    new WrittenTopic(directory, "t").segment(0, 3).commit();
    TopicTable before = (TopicTable) catalog().loadTable(NAME);
    replace();
    PartlogException refused = assertThrows(PartlogException.class, before::truncateTable);
    assertEquals("TOPIC_RECREATED", refused.id());
  }

  /** Spark looks up the table below a view without saying what for, and asks it whether the condition of the DELETE can be met. */
  @Test
  void aDeleteIsOnlyOfATableThatWasLookedUpForIt() throws Exception {
    new WrittenTopic(directory, "t").segment(0, 3).commit();
    Predicate[] all = new Predicate[0];
    for (Set<TableWritePrivilege> others : List.of(Set.<TableWritePrivilege>of(), Set.of(TableWritePrivilege.INSERT))) {
      TopicTable below = (TopicTable) catalog().loadTable(NAME, others);
      PartlogException refused = assertThrows(PartlogException.class, () -> below.canDeleteWhere(all));
      assertEquals("STATEMENT_UNSUPPORTED", refused.id());
    }
    TopicTable target = (TopicTable) catalog().loadTable(NAME, Set.of(TableWritePrivilege.DELETE));
    assertTrue(target.canDeleteWhere(all));
    assertThrows(PartlogException.class, () -> ((TopicTable) catalog().loadTable(NAME)).canDeleteWhere(all), "it is another object");
  }

  /** One session creates topics of a name; another drops each as soon as it is there. */
  @Test
  void aStatementThatWasDoneDoesNotFailSinceAnotherDropsTheTopic() throws Exception {
    TableInfo info = new TableInfo.Builder().withColumns(new Column[0]).withProperties(Map.of("key.type", "string")).build();
    PartlogCatalog catalog = catalog();
    AtomicBoolean ended = new AtomicBoolean();
    Future<Integer> drops = ForkJoinPool.commonPool().submit(() -> {
      PartlogCatalog other = catalog();
      int done = 0;
      while (!ended.get()) {
        done += other.dropTable(NAME) ? 1 : 0;
      }
      return done;
    });
    try {
      for (int created = 0; created < 60; created++) {
        Table table = catalog.createTable(NAME, info);
        assertEquals("string", table.properties().get("key.type"));
        while (catalog.tableExists(NAME)) {
          Thread.onSpinWait();
        }
      }
    } finally {
      ended.set(true);
    }
    assertEquals(60, drops.get());
  }

  /** Spark looks a table up, and then alters it by the object that it looked it up by. */
  @Test
  void aTopicThatTookTheNameIsNotAltered() throws Exception {
    new WrittenTopic(directory, "t").segment(0, 3).commit();
    TableChange shorter = TableChange.setProperty("retention.ms", "1");
    PartlogCatalog catalog = catalog();
    Identifier found = Identifier.of(NAME.namespace(), NAME.name());
    catalog.loadTable(found);
    replace();
    PartlogException refused = assertThrows(PartlogException.class, () -> catalog.alterTable(found, shorter));
    assertEquals("TOPIC_RECREATED", refused.id());
    assertEquals("-1", catalog.loadTable(NAME).properties().getOrDefault("retention.ms", "-1"));
    catalog.alterTable(NAME, shorter);
    catalog.alterTable(Identifier.of(NAME.namespace(), NAME.name()), TableChange.setProperty("segment.ms", "7"));
    assertEquals(List.of("1", "7"),
        List.of(catalog.loadTable(NAME).properties().get("retention.ms"), catalog.loadTable(NAME).properties().get("segment.ms")));
  }
}
