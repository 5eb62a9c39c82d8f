package io.sparklog.format;

import java.util.Locale;

/** How the records of a batch are compressed. The names are the names of Kafka's {@code compression.type}. */
public enum Codec {
  NONE, GZIP, SNAPPY, LZ4, ZSTD;

  private static final Codec[] BY_ID = values();

  /** The number in a batch's attributes. */
  public int id() {
    return ordinal(); // Kafka numbers them in this order.
  }

  public String optionName() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** The codec called {@code optionName}, or null if it does not exist. */
  public static Codec named(String optionName) {
    for (Codec codec : BY_ID) {
      if (codec.optionName().equals(optionName)) {
        return codec;
      }
    }
    return null;
  }

  public static Codec of(int id) throws BadBatch {
    if (id < 0 || id >= BY_ID.length) {
      throw new BadBatch("codec " + id + " is unknown; known are 0 to " + (BY_ID.length - 1));
    }
    return BY_ID[id];
  }
}
