package io.sparklog.write;

import io.sparklog.routing.SlotSet;
import java.io.Serializable;
import java.util.List;

/**
 * The report of a task about one topic.
 *
 * @param pieces all that the task wrote to the topic, by partition
 * @param usedSlots the slots that the task used, which had no partition when the write was planned
 */
public record TopicReport(List<Piece> pieces, SlotSet usedSlots) implements Serializable {
  static final TopicReport NONE = new TopicReport(List.of(), SlotSet.NONE);

  long records() {
    return pieces.stream().mapToLong(Piece::records).sum();
  }
}
