package io.sparklog.storage;

import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Shown;
import java.lang.ref.SoftReference;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Opens the store of a root. {@code sparklog/store/stores.py} understands the same roots in the same way. */
public final class Stores {
  private static final Pattern URI = Pattern.compile("([a-zA-Z][a-zA-Z0-9+.-]*):(?://([^/]*))?(.*)", Pattern.DOTALL);

  private static final Pattern SETTINGS = Pattern.compile("[^?]*\\?[a-zA-Z0-9._-]+=.*", Pattern.DOTALL);

  /**
   * The stores of this JVM that are not on a disk, by their identity. Each task opens a store, and a file system with its connections is
   * costly. One that nothing uses is dropped when memory runs short.
   */
  private static final Map<Object, SoftReference<LogStore>> OPEN = new HashMap<>();

  private Stores() {}

  /** As the others, of a root that needs no settings. */
  public static LogStore open(String root) {
    return open(new StoreRef(root));
  }

  /**
   * As the other.
   *
   * @param settings of Hadoop, asked for only if the root is not on a disk. The store gets the settings that another process needs too
   */
  public static LogStore open(String root, Supplier<? extends Iterable<Map.Entry<String, String>>> settings) {
    return open(opener(root) == null ? new StoreRef(root) : new StoreRef(root, HadoopSettings.toSend(settings.get())));
  }

  /**
   * The store of a root.
   *
   * @param ref names the root by a path, or by {@code file:} and an absolute path, taken literally as Spark takes it: no escapes, query or
   *     fragment. A store on a disk is made from that alone. Or it is a URI of HDFS or S3, as Hadoop takes it, and Hadoop's settings.
   * @throws PartlogException ROOT_REQUIRED if it is blank; STORE_UNSUPPORTED for any other scheme, or a host: commits could be lost in a
   *     store whose put-if-absent was not checked; STORE_UNAVAILABLE; OPTION_VALUE for {@code ~}, for a relative path after {@code file:},
   *     and for a text that the system does not accept as a path. In HDFS and S3 also for settings after {@code ?}, for credentials, and
   *     for names that HDFS does not take
   */
  public static LogStore open(StoreRef ref) {
    String root = ref.root();
    if (root.isBlank()) {
      throw PartlogException.of("ROOT_REQUIRED");
    }
    Function<StoreRef, LogStore> opener = opener(root);
    if (opener != null) {
      return open(ref, opener);
    }
    return local(root);
  }

  /** The folder on a disk that a path names, as {@link #open} takes it. @throws PartlogException STORE_UNSUPPORTED for any other store */
  static LocalStore local(String root) {
    Matcher uri = URI.matcher(root);
    return local(root, uri.matches() ? afterFile(root, uri) : root);
  }

  /**
   * Whether the root of a store has this name too. A root has several names, such as a name with two slashes. @throws as {@link
   * #open(StoreRef)}
   */
  public static boolean isAt(LogStore store, String root) {
    return store.root().equals(root)
        || store.isRemote() == (opener(root) != null) && open(new StoreRef(root, store.ref().settings())).root().equals(store.root());
  }

  /** Null if the root is not one for a file system of Hadoop. */
  private static Function<StoreRef, LogStore> opener(String root) {
    Matcher uri = URI.matcher(root);
    // Lambdas, and no references to methods, which load the class at once: a process that reads a disk needs no class of Hadoop.
    return switch (uri.matches() ? uri.group(1).toLowerCase(Locale.ROOT) : "") {
      case "hdfs", "viewfs" -> requireNameAlone(root, ref -> HdfsStore.open(ref));
      case "s3a" -> requireNameAlone(root, inBucket(uri.group(2)));
      default -> null;
    };
  }

  /** Hadoop would take settings for a part of the name, and show credentials. */
  private static Function<StoreRef, LogStore> requireNameAlone(String root, Function<StoreRef, LogStore> opener) {
    if (SETTINGS.matcher(root).matches()) {
      throw bad(root,
          "after ? it has settings, which Python alone takes there; give them as options that begin with fs., or to the session", null);
    }
    String before = root.split("\\?", 2)[0];
    if (!Shown.name(before).equals(before)) {
      throw bad(root, "after // there must be the name of a server, and at most a port, without credentials", null);
    }
    return opener;
  }

  /** @param authority may have a key and a secret, which no message must show: "key:secret@bucket", where the secret may have a slash */
  private static Function<StoreRef, LogStore> inBucket(String authority) {
    if (authority != null && (authority.contains("@") || authority.contains(":"))) {
      throw bad("s3a://…",
          "after s3a:// there must be the name of a bucket alone, without credentials or a port; settings of the store have "
              + "these: fs.s3a.access.key, fs.s3a.secret.key, fs.s3a.endpoint",
          null);
    }
    return ref -> S3Store.open(ref);
  }

  private static LogStore open(StoreRef ref, Function<StoreRef, LogStore> opener) {
    Object asked = HadoopStore.identity(ref, HadoopSettings.user());
    synchronized (OPEN) {
      SoftReference<LogStore> known = OPEN.get(asked);
      LogStore store = known == null ? null : known.get();
      if (store == null) {
        OPEN.values().removeIf(reference -> reference.get() == null);
        store = opener.apply(ref);
        known = OPEN.get(store.identity()); // The same root by another name.
        LogStore same = known == null ? null : known.get();
        store = same == null ? store : same;
        OPEN.put(asked, new SoftReference<>(store));
        OPEN.put(store.identity(), OPEN.get(asked));
      }
      return store;
    }
  }

  /** Whether a store exists for the place {@code root}. */
  static boolean isKnown(String root) {
    Matcher uri = URI.matcher(root);
    return !uri.matches() || uri.group(1).equalsIgnoreCase("file") || opener(root) != null;
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

  private static LocalStore local(String root, String path) {
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
