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

  private static final String LOGGER = "io.sparklog";
  private static LoggerConfig installed;

  private Warned() {
    super("warned", null, null, true, Property.EMPTY_ARRAY);
  }

  /** From now on, what this thread warns of with an error goes to {@code listener}. */
  public static void listen(Consumer<Throwable> listener) {
    LISTENER.set(listener);
    install();
  }

  /** Again if need be: Spark gives the log another configuration when it first logs, whichever test that is in. */
  private static synchronized void install() {
    LoggerContext context = (LoggerContext) LogManager.getContext(Warned.class.getClassLoader(), false);
    if (installed != null && context.getConfiguration().getLoggers().get(LOGGER) == installed) {
      return;
    }
    Warned appender = new Warned();
    appender.start();
    installed = new LoggerConfig(LOGGER, Level.WARN, false);
    installed.addAppender(appender, Level.WARN, null);
    context.getConfiguration().removeLogger(LOGGER);
    context.getConfiguration().addLogger(LOGGER, installed);
    context.updateLoggers();
  }

  @Override
  public void append(LogEvent event) {
    Consumer<Throwable> listener = LISTENER.get();
    if (listener != null && event.getThrown() != null) {
      listener.accept(event.getThrown());
    }
  }
}
