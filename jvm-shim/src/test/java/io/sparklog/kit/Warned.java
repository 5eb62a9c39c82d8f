package io.sparklog.kit;

import java.util.function.Consumer;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.LoggerConfig;
import org.apache.logging.log4j.core.config.Property;

/** Takes the warnings of the classes under test, in place of the console: what they swallow is checked too. Public for mutated classes. */
public final class Warned extends AbstractAppender {
  private static final ThreadLocal<Consumer<Throwable>> LISTENER = new ThreadLocal<>();

  private Warned() {
    super("warned", null, null, true, Property.EMPTY_ARRAY);
  }

  static {
    LoggerContext context = (LoggerContext) LogManager.getContext(false);
    LoggerConfig logger = new LoggerConfig("io.sparklog", Level.WARN, false);
    Warned appender = new Warned();
    appender.start();
    logger.addAppender(appender, Level.WARN, null);
    context.getConfiguration().addLogger("io.sparklog", logger);
    context.updateLoggers();
  }

  /** From now on, what this thread warns of with an error goes to {@code listener}. */
  public static void listen(Consumer<Throwable> listener) {
    LISTENER.set(listener);
  }

  @Override
  public void append(LogEvent event) {
    Consumer<Throwable> listener = LISTENER.get();
    if (listener != null && event.getThrown() != null) {
      listener.accept(event.getThrown());
    }
  }
}
