package io.sparklog.routing;

import java.util.Locale;

/** How a topic hashes its keys; fixed when it is created. */
public enum Partitioner {
  MURMUR3, MURMUR2;

  public String optionName() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** The partitioner called {@code optionName}, or null if it does not exist. */
  public static Partitioner named(String optionName) {
    for (Partitioner partitioner : values()) {
      if (partitioner.optionName().equals(optionName)) {
        return partitioner;
      }
    }
    return null;
  }

  /** A hash without its sign bit. The sign is not changed: the absolute value of the least int is negative. */
  static int positive(int hash) {
    return hash & Integer.MAX_VALUE;
  }

  /** The hash of the key in [at, at + length). */
  int hash(byte[] key, int at, int length) {
    return this == MURMUR2 ? Murmur.murmur2(key, at, length) : Murmur.murmur3(key, at, length);
  }
}
