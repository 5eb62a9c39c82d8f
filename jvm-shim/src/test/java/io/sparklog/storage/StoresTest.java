package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.sparklog.format.Vectors;
import io.sparklog.spec.PartlogException;
import java.security.PrivilegedExceptionAction;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.hadoop.security.UserGroupInformation;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

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
}
