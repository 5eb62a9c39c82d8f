package io.sparklog.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.sparklog.spec.Invariant;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.net.SocketTimeoutException;
import java.nio.channels.ClosedByInterruptException;
import java.util.List;
import org.apache.spark.sql.execution.streaming.runtime.QueryExecutionThread;
import org.junit.jupiter.api.Test;

final class SparkErrorsTest {
  /** Spark must take the exception of a query that is stopped for an interrupt; on another thread, and for a timeout, it is an error. */
  @Test
  void anInterruptOfAQueryIsShownAsOne() throws InterruptedException {
    for (IOException e : List.of(new ClosedByInterruptException(), new InterruptedIOException())) {
      assertSame(e, assertThrows(UncheckedIOException.class, () -> thrownOnAQuery(e)).getCause());
      assertEquals("PARTLOG_IO", assertThrows(PartlogSparkException.class, () -> SparkErrors.act(() -> {
        throw e;
      })).getCondition());
    }
    assertThrows(PartlogSparkException.class, () -> thrownOnAQuery(new SocketTimeoutException()));
  }

  /** Also a fault of sparklog has a condition, and its stack trace shows where it was found. */
  @Test
  void aFaultOfSparklogIsShownAsOne() {
    PartlogSparkException shown = assertThrows(PartlogSparkException.class,
        () -> SparkErrors.act(() -> Invariant.require(false, () -> "one and one are three")));
    assertEquals("PARTLOG_INTERNAL", shown.getCondition());
    assertEquals("one and one are three", shown.getMessageParameters().get("fault"));
    assertEquals(Invariant.Broken.class, shown.getSuppressed()[0].getClass());
  }

  private static void thrownOnAQuery(IOException e) throws InterruptedException {
    RuntimeException[] thrown = {null};
    Thread query = new QueryExecutionThread("query") {
      @Override
      public void run() {
        thrown[0] = assertThrows(RuntimeException.class, () -> SparkErrors.act(() -> {
          throw e;
        }));
      }
    };
    query.start();
    query.join();
    throw thrown[0];
  }
}
