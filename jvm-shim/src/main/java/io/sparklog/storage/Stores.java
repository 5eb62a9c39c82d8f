package io.sparklog.storage;

import io.sparklog.spec.PartlogException;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Opens the store of a root. {@code sparklog/store/stores.py} understands the same roots in the same way. */
public final class Stores {
  private static final Pattern URI = Pattern.compile("([a-zA-Z][a-zA-Z0-9+.-]*):(?://([^/]*))?(.*)", Pattern.DOTALL);

  private Stores() {}

  /** As the other, of a root that needs no settings. */
  public static LogStore open(String root) {
    return open(new StoreRef(root));
  }

  /**
   * The store of a root.
   *
   * @param ref names the root by a path, or by {@code file:} and an absolute path, taken literally as Spark takes it: no escapes, query or
   *     fragment. A store on a disk is made from that alone.
   * @throws PartlogException ROOT_REQUIRED if it is blank; STORE_UNSUPPORTED for any other scheme, or a host: commits could be lost in a
   *     store whose put-if-absent was not checked; OPTION_VALUE for {@code ~}, for a relative path after {@code file:}, and for what the
   *     system does not accept as a path
   */
  public static LogStore open(StoreRef ref) {
    String root = ref.root();
    if (root.isBlank()) {
      throw PartlogException.of("ROOT_REQUIRED");
    }
    Matcher uri = URI.matcher(root);
    return local(root, uri.matches() ? afterFile(root, uri) : root);
  }

  private static String afterFile(String root, Matcher uri) {
    if (!uri.group(1).equalsIgnoreCase("file")) {
      throw PartlogException.of("STORE_UNSUPPORTED", "root", root, "where", "in a store of the scheme " + uri.group(1));
    }
    String host = uri.group(2);
    if (host != null && !host.isEmpty() && !host.equals("localhost")) {
      throw PartlogException.of("STORE_UNSUPPORTED", "root", root, "where", "on the host " + host);
    }
    if (!uri.group(3).startsWith("/")) {
      throw bad(root, "after file: there must be an absolute path", null);
    }
    return uri.group(3);
  }

  private static LogStore local(String root, String path) {
    if (path.equals("~") || path.startsWith("~/")) {
      String home = System.getenv().getOrDefault("HOME", System.getProperty("user.home"));
      throw bad(root, "only a shell makes a home directory of ~; write " + home + path.substring(1), null);
    }
    try {
      return new LocalStore(Path.of(path).toAbsolutePath().normalize());
    } catch (InvalidPathException e) {
      throw bad(root, e.getMessage(), e);
    }
  }

  private static PartlogException bad(String root, String reason, Exception cause) {
    return PartlogException.caused(cause, "OPTION_VALUE", "option", "path", "value", root, "reason", reason);
  }
}
