package io.sparklog.query;

import io.sparklog.spec.Option;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * One of several parts of each topic: every n-th partition, so that partitions that are added change no part of those before.
 *
 * @param place from 0 on
 * @param parts at least 1
 */
record Share(int place, int parts) {
  private static final Pattern TEXT = Pattern.compile("([0-9]{1,5})/([0-9]{1,5})");

  /** @throws io.sparklog.spec.PartlogException OPTION_VALUE */
  static Share of(String text) {
    Matcher found = TEXT.matcher(text);
    if (found.matches()) {
      Share share = new Share(Integer.parseInt(found.group(1)) - 1, Integer.parseInt(found.group(2)));
      if (share.place >= 0 && share.place < share.parts) {
        return share;
      }
    }
    throw Option.invalidValue("share", text, "it must be k/n with k from 1 to n, as 2/5 for the second of five shares");
  }

  boolean has(int partition) {
    return partition % parts == place;
  }

  /** {@code 2/5} */
  @Override
  public String toString() {
    return place + 1 + "/" + parts;
  }
}
