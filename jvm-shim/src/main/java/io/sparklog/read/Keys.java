package io.sparklog.read;

import io.sparklog.routing.Murmur;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.function.ToIntFunction;

/** A set of keys. One array has the bytes of all: it is cheap to send to a task, and a test of a record allocates nothing. */
public final class Keys implements Serializable {
  private static final long serialVersionUID = 1;
  /** So few are compared one by one, which takes less time than a hash. */
  private static final int FEW = 3;
  static final Keys NONE = of(List.of());

  private final byte[] bytes;
  /** Where each ends in {@link #bytes}. */
  private final int[] ends;

  /** The number of a key by its hash, plus 1; 0 without a key. At least half of it is empty, so that few are looked at. */
  private transient volatile int[] places;

  private Keys(byte[] bytes, int[] ends) {
    this.bytes = bytes;
    this.ends = ends;
  }

  /** @param keys none is null; together they have no more than {@link Filter#KEYS_BYTES_MAX} bytes */
  static Keys of(Collection<byte[]> keys) {
    byte[] bytes = new byte[keys.stream().mapToInt(key -> key.length).sum()];
    int[] ends = new int[keys.size()];
    int at = 0;
    int count = 0;
    for (byte[] key : keys) {
      System.arraycopy(key, 0, bytes, at, key.length);
      at += key.length;
      ends[count++] = at;
    }
    return new Keys(bytes, ends);
  }

  boolean isEmpty() {
    return ends.length == 0;
  }

  /** How many bytes it takes to send them. */
  long size() {
    return bytes.length + (long) Integer.BYTES * ends.length;
  }

  private List<byte[]> all() {
    List<byte[]> all = new ArrayList<>(ends.length);
    for (int i = 0; i < ends.length; i++) {
      all.add(Arrays.copyOfRange(bytes, start(i), ends[i]));
    }
    return all;
  }

  private int start(int i) {
    return i == 0 ? 0 : ends[i - 1];
  }

  /** The keys of each value of {@code function}. */
  Map<Integer, Keys> by(ToIntFunction<byte[]> function) {
    Map<Integer, List<byte[]>> lists = new HashMap<>();
    all().forEach(key -> lists.computeIfAbsent(function.applyAsInt(key), value -> new ArrayList<>()).add(key));
    Map<Integer, Keys> found = new HashMap<>();
    lists.forEach((value, keys) -> found.put(value, of(keys)));
    return found;
  }

  /** Those that meet a condition. */
  public Keys where(Predicate<byte[]> isKept) {
    return of(all().stream().filter(isKept).toList());
  }

  Keys or(Keys other) {
    if (isEmpty() || other.isEmpty()) {
      return isEmpty() ? other : this;
    }
    List<byte[]> both = all();
    other.all().stream().filter(key -> !contains(key, 0, key.length)).forEach(both::add);
    return of(both);
  }

  /** Whether the {@code length} bytes of {@code data} from {@code at} on are a key of this set. */
  boolean contains(byte[] data, int at, int length) {
    if (ends.length <= FEW) {
      for (int key = 0; key < ends.length; key++) {
        if (isAt(key, data, at, length)) {
          return true;
        }
      }
      return false;
    }
    int[] table = places == null ? places = table() : places;
    int last = table.length - 1;
    for (int i = Murmur.murmur3(data, at, length) & last; table[i] != 0; i = i + 1 & last) {
      if (isAt(table[i] - 1, data, at, length)) {
        return true;
      }
    }
    return false;
  }

  private boolean isAt(int key, byte[] data, int at, int length) {
    return Arrays.equals(bytes, start(key), ends[key], data, at, at + length);
  }

  private int[] table() {
    int[] table = new int[Integer.highestOneBit(ends.length) << 2];
    int last = table.length - 1;
    for (int key = 0; key < ends.length; key++) {
      int place = Murmur.murmur3(bytes, start(key), ends[key] - start(key)) & last;
      while (table[place] != 0) {
        place = place + 1 & last;
      }
      table[place] = key + 1;
    }
    return table;
  }
}
