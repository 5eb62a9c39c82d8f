package io.sparklog.partition;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collection;
import java.util.HexFormat;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/**
 * Keys that go to given partitions, whatever their slots are; or changes of these, where a key may get {@link #ENDED}. FORMAT.md section
 * 13.
 */
public final class Pins implements Serializable {
  private static final long serialVersionUID = 1;

  /** As many pins as a topic can have. FORMAT.md section 10. */
  public static final int COUNT_MAX = 10_000;

  /** The most bytes of a key that is pinned. FORMAT.md section 10. */
  public static final int KEY_BYTES_MAX = 1024;

  /** In place of the partition of a key: it has no pin, or its pin ends. */
  public static final int ENDED = -1;

  public static final Pins NONE = new Pins(new byte[0][], new int[0]);

  /** Ascending, by bytes without a sign. */
  private final byte[][] keys;
  private final int[] partitions;

  /** The place of a key by its hash, plus 1; 0 where there is none. There are twice as many or more as keys, so that few are looked at. */
  private transient volatile int[] places;

  private Pins(byte[][] keys, int[] partitions) {
    this.keys = keys;
    this.partitions = partitions;
  }

  /** @param keys each once, ascending by bytes without a sign. @param partitions as many; {@link #ENDED} in a change */
  public static Pins of(byte[][] keys, int[] partitions) {
    return new Pins(keys, partitions);
  }

  /** The change that gives these keys one partition. @param partition may be {@link #ENDED} */
  public static Pins of(Collection<byte[]> keys, int partition) {
    byte[][] sorted = keys.stream().sorted(Arrays::compareUnsigned).toArray(byte[][]::new);
    byte[][] once = IntStream.range(0, sorted.length)
        .filter(i -> i == 0 || !Arrays.equals(sorted[i - 1], sorted[i]))
        .mapToObj(i -> sorted[i])
        .toArray(byte[][]::new);
    int[] partitions = new int[once.length];
    Arrays.fill(partitions, partition);
    return new Pins(once, partitions);
  }

  public int size() {
    return keys.length;
  }

  public boolean isEmpty() {
    return keys.length == 0;
  }

  /** A key, by its place in the order of keys. It must not be changed. */
  public byte[] key(int place) {
    return keys[place];
  }

  /** The partition of the key at a place in the order of keys. */
  public int partition(int place) {
    return partitions[place];
  }

  /** The partition of a key; {@link #ENDED} if it has no pin. */
  public int of(byte[] key) {
    return of(key, 0, key.length);
  }

  /** The partition of the key in [at, at + length); {@link #ENDED} if it has no pin. */
  public int of(byte[] key, int at, int length) {
    return isEmpty() ? ENDED : of(KeyHash.murmur3(key, at, length), key, at, length);
  }

  /** As the other, by the hash that {@link KeyHash#murmur3} gives. */
  int of(int hash, byte[] key, int at, int length) {
    int[] known = places;
    known = known == null ? places() : known;
    int mask = known.length - 1;
    for (int i = hash & mask; known[i] > 0; i = i + 1 & mask) {
      byte[] pinned = keys[known[i] - 1];
      if (Arrays.equals(pinned, 0, pinned.length, key, at, at + length)) {
        return partitions[known[i] - 1];
      }
    }
    return ENDED;
  }

  private int[] places() {
    int[] made = new int[Integer.highestOneBit(keys.length) << 2];
    int mask = made.length - 1;
    for (int place = 0; place < keys.length; place++) {
      int i = KeyHash.murmur3(keys[place], 0, keys[place].length) & mask;
      while (made[i] > 0) {
        i = i + 1 & mask;
      }
      made[i] = place + 1;
    }
    places = made;
    return made;
  }

  /** The pins after these changes. */
  public Pins after(Pins changes) {
    byte[][] both = new byte[keys.length + changes.keys.length][];
    int[] its = new int[both.length];
    int count = 0;
    int own = 0;
    for (int change = 0; change < changes.keys.length; change++) {
      byte[] key = changes.keys[change];
      for (; own < keys.length && Arrays.compareUnsigned(keys[own], key) < 0; own++, count++) {
        both[count] = keys[own];
        its[count] = partitions[own];
      }
      own += own < keys.length && Arrays.equals(keys[own], key) ? 1 : 0;
      if (changes.partitions[change] != ENDED) {
        both[count] = key;
        its[count++] = changes.partitions[change];
      }
    }
    System.arraycopy(keys, own, both, count, keys.length - own);
    System.arraycopy(partitions, own, its, count, keys.length - own);
    count += keys.length - own;
    return new Pins(Arrays.copyOf(both, count), Arrays.copyOf(its, count));
  }

  /** Those of these changes that change something here: a key gets another partition, or loses its own. */
  public Pins changedBy(Pins changes) {
    int[] places = IntStream.range(0, changes.size()).filter(i -> of(changes.keys[i]) != changes.partitions[i]).toArray();
    return new Pins(Arrays.stream(places).mapToObj(i -> changes.keys[i]).toArray(byte[][]::new),
        Arrays.stream(places).map(i -> changes.partitions[i]).toArray());
  }

  /** A key as an error or an answer shows it: as text where it is some, and else as bytes. */
  public static String shown(byte[] key) {
    try {
      String text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(key)).toString();
      return text.chars().anyMatch(Character::isISOControl) ? hex(key) : text;
    } catch (CharacterCodingException bytes) {
      return hex(key);
    }
  }

  private static String hex(byte[] key) {
    return "X'" + HexFormat.of().formatHex(key) + "'";
  }

  /** How many of them are to each of {@code count} partitions. */
  public int[] counts(int count) {
    int[] counts = new int[count];
    Arrays.stream(partitions).filter(partition -> partition != ENDED).forEach(partition -> counts[partition]++);
    return counts;
  }

  /** Whether each pin is to a partition that passes. */
  public boolean areAllTo(IntPredicate partition) {
    return Arrays.stream(partitions).allMatch(partition);
  }

  /** How many numbers they count as, beside a limit. FORMAT.md section 10. */
  public long numbers() {
    return Arrays.stream(keys).mapToLong(key -> 2 + (key.length + 3) / 4).sum();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Pins pins && Arrays.equals(partitions, pins.partitions) && Arrays.deepEquals(keys, pins.keys);
  }

  @Override
  public int hashCode() {
    return 31 * Arrays.deepHashCode(keys) + Arrays.hashCode(partitions);
  }

  /** {@code 3 pins} */
  @Override
  public String toString() {
    return keys.length + " pins";
  }
}
