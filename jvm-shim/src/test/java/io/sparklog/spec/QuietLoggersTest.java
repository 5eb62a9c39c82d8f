package io.sparklog.spec;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.LoggerConfig;
import org.apache.logging.log4j.core.config.Property;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

/** In the Log4j that Spark brings. */
final class QuietLoggersTest {
  private static final class Kept extends AbstractAppender {
    private final List<String> lines = new CopyOnWriteArrayList<>();

    private Kept() {
      super("kept", null, null, true, Property.EMPTY_ARRAY);
    }

    @Override
    public void append(LogEvent event) {
      lines.add(event.getLoggerName() + " " + event.getMessage().getFormattedMessage());
    }
  }

  private static void warn(String text) {
    for (String logger : List.of("a.library.Puts", "a.library.Reads")) {
      LoggerFactory.getLogger(logger).warn(text);
    }
  }

  @Test
  void onlyTheNamedLoggersAreQuietAndOnlyForAWhile() {
    LoggerContext context = (LoggerContext) LogManager.getContext(QuietLoggersTest.class.getClassLoader(), false);
    Kept kept = new Kept();
    kept.start();
    LoggerConfig library = new LoggerConfig("a.library", Level.WARN, false);
    library.addAppender(kept, Level.WARN, null);
    context.getConfiguration().addLogger("a.library", library);
    context.updateLoggers();
    try {
      warn("before");
      QuietLoggers outer = QuietLoggers.of("a.library.Puts");
      QuietLoggers inner = QuietLoggers.of("a.library.Puts", "none");
      warn("within both");
      inner.close();
      warn("within one");
      outer.close();
      warn("after");
      assertEquals(List.of("a.library.Puts before", "a.library.Reads before", "a.library.Reads within both", "a.library.Reads within one",
          "a.library.Puts after", "a.library.Reads after"), kept.lines);
    } finally {
      context.getConfiguration().removeLogger("a.library");
      context.updateLoggers();
    }
  }
}
