package io.sparklog.segment;

import io.sparklog.json.Damaged;
import java.util.Arrays;
import java.util.Locale;

/** The kinds of segments: where the batches of a segment have offsets. FORMAT.md section 4. */
public enum Offsets {
  /** Each offset has a record. */
  DENSE,
  /** Each batch begins where the batch before it ends, and some offsets of a batch may have no record. */
  TILED,
  /** There may be gaps, also between batches. */
  STORED;

  /** The word in files. */
  public String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  static Offsets of(String word) throws Damaged {
    return Arrays.stream(values())
        .filter(kind -> kind.word().equals(word))
        .findFirst()
        .orElseThrow(() -> new Damaged("field offsets is " + word));
  }
}
