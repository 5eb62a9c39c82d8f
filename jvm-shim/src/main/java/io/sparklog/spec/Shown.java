package io.sparklog.spec;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Cuts from names and texts of messages the parts that readers of a log may not see. A name with a scheme may hold credentials before
 * {@code @} and settings after {@code ?}. {@code tests/vectors/names_shown.json} has cases.
 */
public final class Shown {
  private static final Pattern NAME = Pattern.compile("([a-zA-Z][a-zA-Z0-9+.-]*):(//([^/?]*))?(/?[^?]*)(\\?.*)?", Pattern.DOTALL);

  /**
   * The punctuation after a name does not belong to it: with a colon there, a port would be taken for a secret. A match begins where a run
   * of the characters of schemes begins, so that a long run is walked through once.
   */
  private static final Pattern IN_TEXT = Pattern
      .compile("(?<![a-zA-Z0-9+.-])([0-9+.-]*+)([a-zA-Z][a-zA-Z0-9+.-]*+:/(?:[^\\s'\"`<>]*[^\\s'\"`<>:;,.)])?)");

  /** Characters of a value out of a file or of an answer that a message shows. */
  private static final int VALUE_CHARACTERS = 100;

  /** Stands in the place of a part that is not shown. */
  private static final String CUT = "…";

  private Shown() {}

  /** A text without these parts of the names in it. A text that begins with a name is taken for that name. */
  public static String text(String text) {
    return IN_TEXT.matcher(name(text)).replaceAll(found -> Matcher.quoteReplacement(found.group(1) + name(found.group(2))));
  }

  /** A value as a message shows it: its first characters, if it is long. A hostile file has values of 32 KiB. */
  public static String value(String value) {
    return value.codePointCount(0, value.length()) <= VALUE_CHARACTERS
        ? value
        : value.substring(0, value.offsetByCodePoints(0, VALUE_CHARACTERS)) + CUT;
  }

  /** A name without these parts. That of a file on a disk has none. */
  public static String name(String name) {
    Matcher parts = NAME.matcher(name);
    if (!parts.matches() || parts.group(1).equalsIgnoreCase("file") || parts.group(2) == null && !parts.group(4).startsWith("/")) {
      return name;
    }
    String scheme = parts.group(1) + ":";
    String settings = parts.group(5) == null ? "" : "?" + CUT;
    return parts.group(2) == null
        ? scheme + parts.group(4) + settings
        : scheme + "//" + withoutCredentials(parts.group(1), parts.group(3), parts.group(4), settings);
  }

  private static String withoutCredentials(String scheme, String host, String path, String settings) {
    int end = host.lastIndexOf('@');
    if (end >= 0) {
      // In names of Azure, a container has the place of a user.
      boolean container = scheme.toLowerCase(Locale.ROOT).matches("(abfs|wasb)s?") && !host.substring(0, end).contains(":");
      return (container ? host.substring(0, end) : CUT) + host.substring(end) + path + settings;
    }
    if (!mayBeCredentials(scheme, host)) {
      return host + path + settings;
    }
    // "key:secret@bucket" whose secret has a slash in it, or something that cannot be taken apart.
    return path.contains("@") ? CUT + path.substring(path.lastIndexOf('@')) + settings : CUT;
  }

  /** Whether a colon in what looks like a host does not begin a port. A bucket has no port. */
  private static boolean mayBeCredentials(String scheme, String host) {
    boolean bucket = scheme.toLowerCase(Locale.ROOT).matches("s3.*|gs");
    return host.replaceFirst("^\\[[0-9a-fA-F:.]*\\]", "").matches(bucket ? "(?s).*:.*" : "(?s).*:.*[^0-9].*|.*:.*:.*|.*:[0-9]{6,}");
  }
}
