package io.sparklog.segment;

import io.sparklog.json.Damaged;
import io.sparklog.spec.Invariant;
import io.sparklog.spec.Shown;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Locale;

/**
 * A run of whole record batches of one partition. FORMAT.md sections 4 and 5.
 *
 * @param file data file, relative to the topic's folder
 * @param position of the first batch in the file, in bytes
 * @param base offset of the first record
 * @param end offset after the last record
 * @param minTimestamp the least record time in ms, −1 without times
 * @param maxTimestamp the greatest record time in ms, −1 without times
 * @param offsets the kind of segment
 * @param routed whether every record is in the partition where the topic's partitioner puts its key
 * @param ordered whether no record's time is below the time of a record before it, and batches begin with their base timestamp
 * @param headerCrc CRC-32C over the headers of all batches
 * @param indexBytes length of the index behind the last batch; 0 without an index
 * @param further the fields that this version of sparklog does not know, as a JSON object; empty without such fields. They are true of this
 *     segment alone: a segment that is made of it has none
 */
public record Segment(int partition, String file, long position, long bytes, long base, long end, long records, int batches,
    long minTimestamp, long maxTimestamp, Offsets offsets, boolean routed, boolean ordered, int headerCrc, int indexBytes,
    String further) implements Serializable {
  /** As many entries as a segment of the greatest length may have. FORMAT.md section 10. */
  static final int INDEX_BYTES_MAX = 1 << 18;

  /** A segment without an index behind it, and without fields that this version of sparklog does not know. */
  public Segment(int partition, String file, long position, long bytes, long base, long end, long records, int batches, long minTimestamp,
      long maxTimestamp, Offsets offsets, boolean routed, boolean ordered, int headerCrc) {
    this(partition, file, position, bytes, base, end, records, batches, minTimestamp, maxTimestamp, offsets, routed, ordered, headerCrc, 0,
        "");
  }

  /** The same batches with {@code base} as the offset of their first record. */
  public Segment at(long base) {
    Invariant.require(base >= 0, () -> "offset " + base + " is no place for " + this);
    return new Segment(partition, file, position, bytes, base, base + (end - this.base), records, batches, minTimestamp, maxTimestamp,
        offsets, routed, ordered, headerCrc, indexBytes, "");
  }

  /** The same batches from {@code position} of {@code file} on. */
  public Segment in(String file, long position) {
    return new Segment(partition, file, position, bytes, base, end, records, batches, minTimestamp, maxTimestamp, offsets, routed, ordered,
        headerCrc, indexBytes, "");
  }

  /** The same segment, where the two are true of it only if they are true here too. */
  public Segment limited(boolean routed, boolean ordered) {
    return new Segment(partition, file, position, bytes, base, end, records, batches, minTimestamp, maxTimestamp, offsets,
        this.routed && routed, this.ordered && ordered, headerCrc, indexBytes, "");
  }

  /** Whether each of its offsets has a record. */
  public boolean dense() {
    return offsets == Offsets.DENSE;
  }

  /** Whether it begins a data file of one partition: of its own, if the file ends where it ends. FORMAT.md section 8. */
  public boolean isInOwnFile() {
    return position == 0 && Names.isOwnFile(file) && indexBytes == 0;
  }

  /** The same segment, with an index of this length behind its last batch. FORMAT.md section 4. */
  public Segment indexed(int indexBytes) {
    return new Segment(partition, file, position, bytes, base, end, records, batches, minTimestamp, maxTimestamp, offsets, routed, ordered,
        headerCrc, indexBytes, "");
  }

  /** The position after the last batch. */
  public long endPosition() {
    return position + bytes;
  }

  /** The position after its index; where it has none, that after the last batch. */
  public long endOfIndex() {
    return endPosition() + indexBytes;
  }

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
}
