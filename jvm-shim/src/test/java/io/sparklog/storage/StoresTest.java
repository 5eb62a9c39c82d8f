package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.sparklog.format.Vectors;
import io.sparklog.log.Root;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.PrivilegedExceptionAction;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.security.UserGroupInformation;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class StoresTest {
  static Stream<JsonNode> roots() {
    return StreamSupport.stream(Vectors.load("roots.json").spliterator(), false);
  }

  /** The client of HDFS sends no request before it is used. */
  @Test
  void usersDoNotShareAStore() throws Exception {
    StoreRef ref = new StoreRef("hdfs://127.0.0.1:1/log");
    LogStore own = Stores.open(ref);
    UserGroupInformation other = UserGroupInformation.createRemoteUser("other");
    LogStore others = other.doAs((PrivilegedExceptionAction<LogStore>) () -> Stores.open(ref));
    assertNotSame(own, others);
    assertNotEquals(own.identity(), others.identity());
    assertSame(own, Stores.open(ref));
    assertSame(others, other.doAs((PrivilegedExceptionAction<LogStore>) () -> Stores.open(ref)));
    assertEquals(own.ref(), others.ref(), "what tasks are sent");
  }

  @Test
  void aRootHasSeveralNames() {
    TreeMap<String, String> settings = new TreeMap<>(Map.of("fs.defaultFS", "hdfs://127.0.0.1:1"));
    LogStore remote = Stores.open(new StoreRef("hdfs://127.0.0.1:1/log", settings));
    for (String name : List.of("hdfs://127.0.0.1:1/log", "hdfs://127.0.0.1:1//log/", "hdfs:///log", "hdfs:/log")) {
      assertTrue(Stores.isAt(remote, name), name);
    }
    assertTrue(Stores.isAt(Stores.open(new StoreRef("hdfs://127.0.0.1:1", settings)), "hdfs://127.0.0.1:1/"));
    LogStore local = Stores.open("/data/log");
    for (String name : List.of("/data/log", "/data//log/", "file:/data/log", "file:///data/x/../log")) {
      assertTrue(Stores.isAt(local, name), name);
    }
    for (String name : List.of("/data/log2", "/log", "hdfs://127.0.0.1:1/data/log", "hdfs://127.0.0.1:2/log")) {
      assertFalse(Stores.isAt(remote, name), name);
      assertFalse(Stores.isAt(local, name), name);
    }
  }

  /** Each was another root, or an exception of Hadoop's, or was shown with its secret. */
  @ParameterizedTest
  @ValueSource(strings = {"s3a://bucket/root?endpoint_override=localhost:9000", "s3a://bucket/root?secret_key=SECRET",
      "s3a://bucket?region=x", "hdfs://namenode:8020/root?webhdfs=namenode:9870", "viewfs://cluster/a?b.c=d",
      "hdfs://user:SECRET@namenode/root", "hdfs://user:SECRET/x@namenode/root", "hdfs://user@namenode/root", "hdfs://namenode/a:b",
      "hdfs://namenode:8020/a/b:c/d"})
  void whatIsNoNameAloneIsRefused(String root) {
    PartlogException refused = assertThrows(PartlogException.class, () -> Stores.open(root));
    assertEquals("OPTION_VALUE", refused.id());
    assertEquals("path", refused.parameters().get("option"));
    assertFalse(refused.getMessage().contains("SECRET"), refused.getMessage());
  }

  /** Also where the scheme is unknown, or the file system cannot be opened: Hadoop's exceptions have the name in their texts. */
  @ParameterizedTest
  @ValueSource(strings = {"s3://KEY:SECRET@bucket/x", "s3n://KEY:SEC/SECRET@bucket/x", "gs://bucket/x?key=SECRET",
      "s3a:///x?secret_key=SECRET", "s3a://buc*ket/x?secret_key=SECRET"})
  void noRefusalShowsASecret(String root) {
    PartlogException refused = assertThrows(PartlogException.class, () -> Stores.open(root));
    assertFalse(refused.getMessage().contains("SECRET"), refused.getMessage());
  }

  /** The folders of partitions come into a bucket with a copy of a root. A file system on a disk is in the place of the server's. */
  @Test
  void aPartitionOfARootIsNotARootInABucketEither(@TempDir Path folder) throws IOException {
    Files.createDirectories(folder.resolve("_partlog/orders"));
    Files.createDirectories(folder.resolve("orders-0"));
    FileSystem files = FileSystem.newInstance(URI.create("file:///"), new Configuration(false));
    SharedFiles shared = new SharedFiles(() -> files, Duration.ofHours(1), Requests.IN_TURN);
    Root root = new Root(new S3Store(shared, new org.apache.hadoop.fs.Path("file:" + folder + "/orders-0"), Map.of()));
    assertEquals("PARTITION_DIRECTORY", assertThrows(PartlogException.class, root::requireWritable).id());
    assertEquals("PARTITION_DIRECTORY", assertThrows(PartlogException.class, root::requireReadable).id());
  }

  /** tests/unit/test_log_arguments.py has the same cases: both halves must go to the same place. */
  @ParameterizedTest
  @MethodSource("roots")
  void aRootIsTakenAsItStands(JsonNode root) {
    String text = root.get("root").textValue();
    if (root.has("path")) {
      assertEquals(root.get("path").textValue(), Stores.open(text).root());
    } else {
      PartlogException error = assertThrows(PartlogException.class, () -> Stores.open(text));
      assertEquals(root.get("refused").textValue(), error.id());
      assertTrue(error.getMessage().contains(root.get("says").textValue()), error.getMessage());
    }
  }

  @Test
  void aSettingOfHadoopsOwnJarsIsNotGiven() {
    String part = "fs.s3a.multipart.size";
    assertFalse(HadoopSettings.isGiven(part, HadoopSettings.configuration(Map.of())));
    assertTrue(HadoopSettings.isGiven(part, HadoopSettings.configuration(Map.of(part, "32M"))));
  }
}
