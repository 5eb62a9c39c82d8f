package io.sparklog.storage;

import io.sparklog.spec.PartlogException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.regex.Pattern;

/** Finds the store for a root. */
public final class Stores {
  /** What stands between two slashes and a third is a host, and none but this one has our disks. */
  private static final Pattern OTHER_HOST = Pattern.compile("[^:]*://(?!localhost/)[^/]");

  private Stores() {}

  /**
   * The store that keeps {@code root}: a path, or a {@code file:} URI.
   *
   * @throws PartlogException STORE_UNSUPPORTED for any other scheme, or another host: a store whose put-if-absent nobody has checked could lose commits
   */
  public static LogStore open(String root) {
    if (root.isBlank()) {
      throw PartlogException.of("ROOT_REQUIRED");
    }
    try {
      if (root.matches("[a-zA-Z][a-zA-Z0-9+.-]*:.*")) {
        String scheme = root.substring(0, root.indexOf(':'));
        if (!scheme.equalsIgnoreCase("file") || OTHER_HOST.matcher(root).lookingAt()) {
          throw PartlogException.of("STORE_UNSUPPORTED", "root", root, "scheme", scheme);
        }
        return local(Path.of(path(root)));
      }
      return local(Path.of(root));
    } catch (InvalidPathException e) {
      throw PartlogException.caused(e, "OPTION_VALUE", "option", "path", "value", root, "reason", e.getMessage());
    }
  }

  private static String path(String uri) {
    try {
      return new URI(uri).getPath();
    } catch (URISyntaxException notEscaped) {
      // As Hadoop's paths, which carry spaces as they are.
      return uri.substring(uri.indexOf(':') + 1).replaceFirst("^/+", "/");
    }
  }

  private static LogStore local(Path path) {
    return new LocalStore(path.toAbsolutePath().normalize());
  }
}
