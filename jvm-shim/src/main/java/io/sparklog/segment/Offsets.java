package io.sparklog.segment;

import io.sparklog.json.Damaged;
import io.sparklog.spec.Shown;
import java.util.Arrays;
import java.util.Locale;

/** The kinds of segments: which of the offsets of a segment have a record. FORMAT.md section 4. */
public enum Offsets {
  /** Each offset has a record. */
  DENSE,
  /** A batch may have fewer records than offsets. */
  TILED;

  /** The word in files. */
  public String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  static Offsets of(String word) throws Damaged {
    return Arrays.stream(values())
        .filter(kind -> kind.word().equals(word))
        .findFirst()
        .orElseThrow(() -> new Damaged("field offsets is " + Shown.value(word)));
  }
}
