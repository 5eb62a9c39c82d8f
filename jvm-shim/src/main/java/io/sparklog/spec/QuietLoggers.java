package io.sparklog.spec;

import java.util.List;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.Filter;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.config.LoggerConfig;
import org.apache.logging.log4j.core.filter.AbstractFilter;

/**
 * Keeps the lines of a library's loggers out of the log, until it is closed: their warnings are known and wanted. No level is changed, so
 * nothing is left behind, also if other code changes levels meanwhile. Where the process logs by other means than Log4j, it has no effect.
 */
public final class QuietLoggers implements AutoCloseable {
  private final Runnable undo;

  private QuietLoggers(Runnable undo) {
    this.undo = undo;
  }

  /** @param names of loggers */
  public static QuietLoggers of(String... names) {
    try {
      return new QuietLoggers(Silence.begin(List.of(names)));
    } catch (Throwable unknown) { // An Error too: the classes of Log4j need not be there.
      return new QuietLoggers(() -> {});
    }
  }

  @Override
  public void close() {
    undo.run();
  }

  /** Apart from the other class, which must load without Log4j. */
  private static final class Silence extends AbstractFilter {
    private final List<String> names;

    private Silence(List<String> names) {
      this.names = names;
    }

    /** @return ends it */
    private static Runnable begin(List<String> names) {
      Silence silence = new Silence(names);
      List<LoggerConfig> loggers = names.stream().map(Silence::logger).distinct().toList();
      loggers.forEach(logger -> logger.addFilter(silence));
      return () -> loggers.forEach(logger -> logger.removeFilter(silence));
    }

    /** The part of the configuration by which the logger is logged. */
    private static LoggerConfig logger(String name) {
      return ((LoggerContext) LogManager.getContext(Silence.class.getClassLoader(), false)).getConfiguration().getLoggerConfig(name);
    }

    @Override
    public Filter.Result filter(LogEvent event) {
      return names.contains(event.getLoggerName()) ? Filter.Result.DENY : Filter.Result.NEUTRAL;
    }
  }
}
