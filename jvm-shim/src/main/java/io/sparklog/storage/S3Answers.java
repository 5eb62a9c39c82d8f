package io.sparklog.storage;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.FileAlreadyExistsException;
import java.util.Set;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsSupport;

/**
 * Tells from the failure of a conditional put in S3 how it ended. FORMAT.md annex J.
 *
 * <p>Classes of hadoop-aws and of the SDK are known by their methods: they are there only when a program runs.
 */
final class S3Answers {
  private static final int TAKEN = 412;

  /** These may come from between client and server, or tell that an answer was not waited for. */
  private static final Set<Integer> PROVE_NOTHING = Set.of(408, 499);

  private static final int NOT_IMPLEMENTED = 501;

  private S3Answers() {}

  /** How many requests the client of {@code files} has repeated by itself, as far as it counts them. */
  static long repeats(FileSystem files) {
    IOStatistics statistics = IOStatisticsSupport.retrieveIOStatistics(files);
    return statistics == null
        ? 0
        : statistics.counters().getOrDefault("store_io_retry", 0L) + statistics.counters().getOrDefault("store_io_throttled", 0L)
            + statistics.counters().getOrDefault("ignored_errors", 0L);
  }

  /**
   * The exception that {@link LogStore#putIfAbsent} promises for a put that failed.
   *
   * @param repeated whether the client may have sent the request before. Then only the file decides: the earlier request may be carried out
   *     although this request was refused
   */
  static IOException ended(String location, Throwable e, boolean repeated) {
    Throwable answer = answer(e);
    int status = answer == null ? 0 : number(answer, "statusCode");
    if (status == TAKEN || e instanceof org.apache.hadoop.fs.FileAlreadyExistsException
        || e.getClass().getSimpleName().equals("RemoteFileChangedException")) {
      return (IOException) new FileAlreadyExistsException(location).initCause(e);
    }
    boolean over = !repeated && answer != null && number(answer, "numAttempts") == 1 && isRefusal(status);
    return over ? refused(location, e) : new NoAnswerException(location, e);
  }

  /** Whether a server with this answer has not carried out the request, and will not. */
  private static boolean isRefusal(int status) {
    return status >= 300 && status < 500 && !PROVE_NOTHING.contains(status) || status == NOT_IMPLEMENTED;
  }

  private static IOException refused(String location, Throwable e) {
    return e instanceof IOException io ? HadoopErrors.translated(location, io) : new IOException("the put of " + location + " failed", e);
  }

  /** The SDK's exception for the answer of a server; null without such an exception. */
  private static Throwable answer(Throwable e) {
    for (Throwable at = e; at != null; at = at.getCause()) {
      if (number(at, "numAttempts") > 0 && number(at, "statusCode") > 0) {
        return at;
      }
    }
    return null;
  }

  /** The number that a method without parameters returns; 0 if the method does not exist, or does not return a number. */
  private static int number(Throwable e, String method) {
    try {
      Method found = e.getClass().getMethod(method);
      return found.invoke(e) instanceof Integer number ? number : 0;
    } catch (NoSuchMethodException | IllegalAccessException | InvocationTargetException none) {
      return 0;
    }
  }
}
