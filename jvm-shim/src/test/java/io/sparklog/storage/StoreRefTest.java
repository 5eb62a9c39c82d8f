package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.util.Comparator;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class StoreRefTest {
  private static StoreRef ref(String... settings) {
    TreeMap<String, String> map = new TreeMap<>(Comparator.reverseOrder());
    for (int i = 0; i < settings.length; i += 2) {
      map.put(settings[i], settings[i + 1]);
    }
    return new StoreRef("/data/log", map);
  }

  @Test
  void refsOfTheSameValuesAreEqual() {
    assertEquals(ref("a", "1", "b", "2"), ref("b", "2", "a", "1"));
    assertEquals(ref("a", "1", "b", "2").hashCode(), ref("b", "2", "a", "1").hashCode());
    assertNotEquals(ref("a", "1"), ref("a", "2"));
    assertNotEquals(ref("a", "1"), ref());
    assertEquals(new StoreRef("/data/log"), ref());
  }

  @Test
  void theyDoNotChange() {
    TreeMap<String, String> settings = new TreeMap<>(Map.of("a", "1"));
    StoreRef ref = new StoreRef("/data/log", settings);
    settings.put("b", "2");
    assertEquals(Map.of("a", "1"), ref.settings());
    assertThrows(UnsupportedOperationException.class, () -> ref.settings().put("c", "3"));
  }

  @Test
  void aSecretIsNotShown() {
    assertEquals("/data/log", ref().toString());
    assertEquals("/data/log with fs.key, fs.user", ref("fs.user", "me", "fs.key", "secret").toString());
  }

  @Test
  void oneOfALocalRootIsSmallWhenSent() throws Exception {
    ByteArrayOutputStream sent = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(sent)) {
      out.writeObject(ref());
    }
    assertTrue(sent.size() < 500, sent.size() + " bytes");
    try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(sent.toByteArray()))) {
      assertEquals(ref(), in.readObject());
    }
  }
}
