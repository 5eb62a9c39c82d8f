package io.sparklog.spec;

import java.io.InterruptedIOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * An error that {@code spec/errors.json} declares: what went wrong, where, and how to fix it.
 *
 * <p>Knows nothing of Spark, so that the layers below can throw it; the Spark surface passes it on as a {@code SparkThrowable}.
 */
public class PartlogException extends IllegalArgumentException {
  private final String id;
  private final LinkedHashMap<String, String> parameters;

  protected PartlogException(PartlogException other) {
    super(other.getMessage(), other);
    this.id = other.id;
    this.parameters = other.parameters;
  }

  private PartlogException(String id, LinkedHashMap<String, String> parameters, Throwable cause) {
    super(Errors.message(id, parameters), cause);
    this.id = id;
    this.parameters = parameters;
  }

  /**
   * The error {@code id} with its parameters as name, value, name, value …
   *
   * @throws IllegalStateException if errors.json has no such id, or names another set of parameters
   */
  public static PartlogException of(String id, Object... namesAndValues) {
    return caused(null, id, namesAndValues);
  }

  /** As {@link #of}, with a cause. Values are cut as {@link Shown} says: a name may hold a secret. */
  public static PartlogException caused(Throwable cause, String id, Object... namesAndValues) {
    LinkedHashMap<String, String> parameters = new LinkedHashMap<>();
    for (int i = 0; i < namesAndValues.length; i += 2) {
      parameters.put((String) namesAndValues[i], String.valueOf(namesAndValues[i + 1]));
    }
    return new PartlogException(id, shown(parameters), cause);
  }

  /** A text may repeat a name that is another parameter, and has an end that cannot be found in the text. */
  private static LinkedHashMap<String, String> shown(LinkedHashMap<String, String> parameters) {
    LinkedHashMap<String, String> shown = new LinkedHashMap<>();
    parameters.forEach((name, value) -> {
      String text = value;
      for (String other : parameters.values()) {
        text = text.replace(other, Shown.name(other));
      }
      shown.put(name, Shown.text(text));
    });
    return shown;
  }

  /** IO: reading or writing failed. Names the file that {@code cause} names, else {@code fallback}. */
  public static PartlogException io(Exception cause, String fallback) {
    String file = cause instanceof FileSystemException named && named.getFile() != null ? named.getFile() : fallback;
    String why = cause instanceof AccessDeniedException ? "access is denied" : FullDisk.told(cause.toString(), cause, file);
    return caused(cause, "IO", "file", file, "cause", why);
  }

  /** Whether reading or writing failed because its thread was interrupted. */
  public static boolean isInterrupt(Throwable failure) {
    // Channels throw the one, Hadoop's file systems the other. A SocketTimeoutException, which derives from it, is not an interrupt.
    return failure instanceof ClosedByInterruptException || failure != null && failure.getClass() == InterruptedIOException.class;
  }

  /** The id in errors.json, without the prefix {@code PARTLOG_}. */
  public String id() {
    return id;
  }

  /** The condition that Spark shows: {@code PARTLOG_<id>}. */
  public String condition() {
    return "PARTLOG_" + id;
  }

  /** How a caller can react: {@code call}, {@code data}, {@code upgrade}, {@code retry}, {@code unknown} or {@code fenced}. */
  public String kind() {
    return Errors.kind(id);
  }

  /** The parameters of the text, in the order they were given. */
  public Map<String, String> parameters() {
    return parameters;
  }
}
