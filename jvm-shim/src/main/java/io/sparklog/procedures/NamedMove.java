package io.sparklog.procedures;

import io.sparklog.log.State;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HexFormat;

/**
 * A slot that is to move, and the partition that it moves to.
 *
 * @param key of the slot; null if the slot is given as a number
 * @param number of the slot; has no meaning beside a key
 */
record NamedMove(byte[] key, int number, int to) implements Comparable<NamedMove> {
  private static final Comparator<NamedMove> ORDER = Comparator
      .comparing(NamedMove::key, Comparator.nullsFirst((one, other) -> Arrays.compareUnsigned(one, other)))
      .thenComparing(NamedMove::number);

  int slot(State state) {
    return key == null ? number : state.routing().table().slot(state.config().partitioner(), key);
  }

  /** The key as an answer shows it: text in UTF-8 as it is, and other bytes as {@code X'…'}. Null without a key. */
  String shownKey() {
    if (key == null) {
      return null;
    }
    try {
      String text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(key)).toString();
      return text.chars().anyMatch(Character::isISOControl) ? hex() : text;
    } catch (CharacterCodingException bytes) {
      return hex();
    }
  }

  private String hex() {
    return "X'" + HexFormat.of().formatHex(key) + "'";
  }

  @Override
  public int compareTo(NamedMove other) {
    return ORDER.compare(this, other);
  }
}
