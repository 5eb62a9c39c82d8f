package io.sparklog.source;

import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import java.nio.file.Path;
import java.util.Arrays;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.internal.SQLConf;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** A log, a Spark of four cores, and the groups that scans of its topics tell Spark. */
abstract class GroupsOfScans {
  static final String CORES = "spark.sql.files.minPartitionNum";

  @TempDir
  Path directory;
  KeyedLog log;

  @BeforeEach
  void makesALog() {
    log = new KeyedLog(directory.resolve("log"));
    SQLConf.get().setConfString(CORES, "4");
  }

  @AfterEach
  void unsetsTheCores() {
    SQLConf.get().unsetConf(CORES);
  }

  final Reads reads(String topics) {
    return Reads.of(directory.resolve("log"), "includeHeaders", "false", "subscribe", topics).ofCatalog();
  }

  static String groups(PartlogScan scan) {
    return Arrays.toString(assertInstanceOf(KeyGroupedPartitioning.class, scan.outputPartitioning()).keys());
  }
}
