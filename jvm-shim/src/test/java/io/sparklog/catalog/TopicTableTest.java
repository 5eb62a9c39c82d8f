package io.sparklog.catalog;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.sparklog.kit.WrittenTopic;
import io.sparklog.spec.PartlogException;
import java.nio.file.Path;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A topic as a table of a catalog. */
final class TopicTableTest {
  private static final Identifier NAME = Identifier.of(new String[] {"topics"}, "t");

  @TempDir
  Path directory;

  @Test
  void recordsOfATopicThatTookTheNameAreNotDeleted() throws Exception {
    new WrittenTopic(directory, "t").segment(0, 3).commit();
    PartlogCatalog catalog = new PartlogCatalog();
    catalog.initialize("events", new CaseInsensitiveStringMap(Map.of("root", directory.toString())));
    TopicTable before = (TopicTable) catalog.loadTable(NAME);
    catalog.dropTable(NAME);
    catalog.createTable(NAME, new TableInfo.Builder().withColumns(new Column[0]).withProperties(Map.of()).build());
    PartlogException refused = assertThrows(PartlogException.class, before::truncateTable);
    assertEquals("TOPIC_RECREATED", refused.id());
  }
}
