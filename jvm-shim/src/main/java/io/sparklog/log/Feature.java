package io.sparklog.log;

import java.util.Arrays;
import java.util.Optional;
import java.util.Set;

/** A part of the format that a topic may use, and that some programs must know. FORMAT.md section 5. */
enum Feature {
  /** Keys have slots, which re-routes move. */
  SLOTS("routing.slots", Binds.KEY_READERS),

  /** Slots get their partition when a record first uses them. */
  UNBOUND("routing.unbound", Binds.KEY_READERS, SLOTS),

  /** The topic knows the newest batches of producers, so that a batch that is sent again is not added again. */
  PRODUCERS("producers", Binds.WRITERS);

  /** The programs that must know a feature. Each kind binds the kinds after it, too. */
  enum Binds {
    /** Programs that return the records of a range of offsets. */
    RECORD_READERS("readers"),
    /** Readers that find the partition of a key, or that keep the order of keys over re-routes. */
    KEY_READERS("keyReaders"),
    /** Writers. */
    WRITERS("writers");

    private final String word;

    Binds(String word) {
      this.word = word;
    }

    /** The programs that a word in a file means. An unknown word means all programs. */
    static Binds of(String word) {
      return Arrays.stream(values()).filter(binds -> binds.word.equals(word)).findFirst().orElse(RECORD_READERS);
    }

    /** The word in version files and checkpoints. */
    String word() {
      return word;
    }

    boolean includes(Binds programs) {
      return compareTo(programs) <= 0;
    }
  }

  private final String text;
  private final Binds binds;
  private final Set<Feature> requires;

  Feature(String text, Binds binds, Feature... requires) {
    this.text = text;
    this.binds = binds;
    this.requires = Set.of(requires);
  }

  /** The name in version files and checkpoints. */
  String text() {
    return text;
  }

  /** The features that each topic with this feature has, too. */
  Set<Feature> requires() {
    return requires;
  }

  Binds binds() {
    return binds;
  }

  /** The feature of a name; empty if this version of sparklog does not know it. */
  static Optional<Feature> of(String text) {
    return Arrays.stream(values()).filter(feature -> feature.text.equals(text)).findFirst();
  }
}
