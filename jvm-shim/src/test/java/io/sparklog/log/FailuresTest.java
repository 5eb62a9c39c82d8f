package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class FailuresTest {
  @Test
  void eachPartIsTriedAndTheFirstFailureHoldsTheOthers() {
    List<Integer> tried = new ArrayList<>();
    PartlogException second = PartlogException.of("TOPIC_NOT_FOUND", "topic", "t", "root", "r", "topics", "none");
    Failures failures = new Failures("/place");
    failures.throwFirst();
    failures.attempt(() -> {
      tried.add(0);
      throw new IOException("the disk is full");
    });
    failures.attempt(() -> tried.add(1));
    failures.attempt(() -> {
      tried.add(2);
      throw second;
    });
    assertEquals(List.of(0, 1, 2), tried);
    assertEquals(2, failures.all().size());
    PartlogException thrown = assertThrows(PartlogException.class, failures::throwFirst);
    assertEquals("IO", thrown.id());
    assertEquals("/place", thrown.parameters().get("file"));
    assertEquals("the disk is full", thrown.getCause().getMessage());
    assertSame(second, thrown.getSuppressed()[0]);
    assertEquals(1, thrown.getSuppressed().length);
  }
}
