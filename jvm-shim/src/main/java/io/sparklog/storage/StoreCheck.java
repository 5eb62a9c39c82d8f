package io.sparklog.storage;

import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Tries, for people, whether puts in a store are exclusive. */
public final class StoreCheck {
  /** A root below a folder, which is the first group. */
  private static final Pattern BELOW = Pattern.compile("([a-zA-Z0-9+.-]+://[^/]*(?:/.*[^/])?|/.*[^/])/[^/]+");

  private StoreCheck() {}

  /**
   * How it went.
   *
   * @param winners the puts that won
   * @param losers the puts that were refused
   * @param unanswered the puts whose outcome the store did not report
   */
  public record PutCounts(long winners, long losers, long unanswered) {}

  /**
   * Lets threads put files at the same moments, and deletes these, and all folders that were not there before.
   *
   * @param folder of the root, in which to put the files
   * @throws PartlogException STORE_UNSAFE; ROOT_NOT_WRITABLE if a put fails in another way
   */
  public static PutCounts run(LogStore store, String folder, int keys) {
    PutProbe.Result result;
    try {
      List<LogStore> missing = missing(store);
      try {
        result = new PutProbe(store, folder).run(keys);
      } finally {
        for (LogStore each : missing) {
          each.deleteFolderIfEmpty("");
        }
      }
    } catch (IOException e) {
      String cause = e instanceof AccessDeniedException ? "access is denied" : e.toString();
      throw PartlogException.caused(e, "ROOT_NOT_WRITABLE", "root", store.root(), "cause", cause);
    }
    result.requireSafe();
    return new PutCounts(result.won(), result.refused(), result.unanswered());
  }

  /** The root and the folders above it, from the root on, up to the first that exists. */
  private static List<LogStore> missing(LogStore store) throws IOException {
    List<LogStore> missing = new ArrayList<>();
    for (LogStore at = store; store.hasFolders() && !at.rootExists();) {
      missing.add(at);
      Matcher below = BELOW.matcher(at.root());
      if (!below.matches()) {
        break;
      }
      at = Stores.open(new StoreRef(below.group(1), store.ref().settings()));
    }
    return missing;
  }
}
