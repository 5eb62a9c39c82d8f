package io.sparklog.catalog;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import org.junit.jupiter.api.Test;

class CatalogTargetTest {
  @Test
  void aSecretIsNotShown() {
    Map<String, String> settings = Map.of("fs.s3a.secret.key", "secret");
    assertEquals("s3a://bucket/log", new CatalogTarget("s3a://bucket/log", settings, null, null).toString());
    assertEquals("s3a://bucket/log, topic t, commits", new CatalogTarget("s3a://bucket/log", settings, "t", "commits").toString());
  }
}
