package io.sparklog.catalog;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.junit.jupiter.api.Test;

/** The options of a save reach its own look-ups, and no others. */
final class FormatIdentifierTest {
  private static FormatIdentifier begun(String key) {
    return FormatIdentifier.begun("/root", new CaseInsensitiveStringMap(Map.of("topic", "t", "fs.key", key, "partitions", "3")));
  }

  /** As Spark makes a name of the parts of another. */
  private static Identifier parts(Identifier of) {
    return Identifier.of(of.namespace(), of.name());
  }

  /** As the name stands in a statement. */
  private static Identifier written() {
    return Identifier.of(new String[] {"/root"}, new String("t".toCharArray()));
  }

  @Test
  void theyReachTheLookUpsOfTheSave() {
    FormatIdentifier save = begun("one");
    assertEquals(Map.of("fs.key", "one"), FormatIdentifier.settingsOf(parts(save)));
    assertTrue(FormatIdentifier.isBegun(parts(save)));
    FormatIdentifier.ended(parts(save));
    assertEquals(Map.of(), FormatIdentifier.settingsOf(parts(save)));
  }

  @Test
  void aStatementAboutTheSameTopicHasNone() {
    FormatIdentifier failed = begun("one");
    assertEquals(Map.of(), FormatIdentifier.settingsOf(written()));
    assertFalse(FormatIdentifier.isBegun(written()));
    FormatIdentifier save = begun("two");
    assertEquals(List.of(Map.of(), Map.of("fs.key", "two")),
        List.of(FormatIdentifier.settingsOf(parts(failed)), FormatIdentifier.settingsOf(parts(save))));
  }

  @Test
  void aLookUpOfAnotherTopicDoesNotEndIt() {
    FormatIdentifier read = begun("read");
    FormatIdentifier save = begun("save");
    FormatIdentifier.ended(read);
    FormatIdentifier.ended(written());
    assertEquals(Map.of("fs.key", "save"), FormatIdentifier.settingsOf(parts(save)));
  }

  @Test
  void anotherThreadHasNone() {
    FormatIdentifier save = begun("one");
    assertEquals(Map.of(), CompletableFuture.supplyAsync(() -> FormatIdentifier.settingsOf(parts(save))).join());
  }
}
