package io.sparklog.sim;

import java.util.regex.Pattern;

/** A kind of act on the commit log: in some worlds what goes wrong goes wrong there. */
enum Moment {
  PUTS_VERSION("link", "\\d{20}\\.json"), LOOKS_AT_VERSION("tag", "\\d{20}\\.json"), READS_VERSION("read", "\\d{20}\\.json"),
  DELETES_VERSION("delete", "\\d{20}\\.json"), PUTS_CHECKPOINT("link", "\\d{20}\\.checkpoint-.*"),
  READS_CHECKPOINT("open", "\\d{20}\\.checkpoint-.*"), FLUSHES("flush", null), LISTS("list", null);

  private final String call;
  private final Pattern file;

  /** @param file in the topic's folder; null for the folder itself */
  Moment(String call, String file) {
    this.call = call;
    this.file = file == null ? null : Pattern.compile(file);
  }

  /** Whether {@code call} of {@code name} is an act of this kind. */
  boolean is(String called, String name) {
    if (!called.equals(call) || !name.startsWith("_partlog/" + Truth.TOPIC)) {
      return false;
    }
    return file == null
        ? name.length() == Truth.FOLDER.length() - 1
        : name.length() > Truth.FOLDER.length() && file.matcher(name.substring(Truth.FOLDER.length())).matches();
  }
}
