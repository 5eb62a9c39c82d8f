package io.sparklog.admin;

import io.sparklog.log.Fill;
import io.sparklog.log.NextVersion;
import io.sparklog.log.Routing;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.partition.SlotTable;
import io.sparklog.spec.Option;
import io.sparklog.spec.PartlogException;
import java.util.Optional;
import java.util.SortedMap;

/** Says how the slots that are bound next are shared among partitions. FORMAT.md section 13.5. */
final class SetFill extends AdministrativeChange {
  private static final String FILL = "fill";

  private final TopicLog log;
  private final Fill fill;

  /**
   * @param shares by partition; one that is not named has none
   * @param untilMs from when on it has no effect, in ms since 1970
   * @throws PartlogException PARTITION_NOT_FOUND; OPTION_VALUE for a share that is out of range or of a closed partition, where all are 0,
   *     and for a topic whose keys have their partitions before they are written
   */
  SetFill(TopicLog log, State planned, SortedMap<Integer, Long> shares, long untilMs) {
    super(log, planned);
    this.log = log;
    if (!planned.config().partitioner().bindsSlots()) {
      throw Option.invalidValue(FILL, shares.toString(),
          "topic " + log.topic() + " has the partitioner " + planned.config().partitioner().optionName()
              + ", which places a key before it is written: name a topic of partitioner lag_aware");
    }
    int[] all = new int[planned.partitions()];
    shares.forEach((partition, share) -> {
      planned.requirePartition(FILL, log.store().root(), partition);
      String value = partition + ": " + share;
      if (share < 0 || share > SlotTable.WEIGHT_MAX) {
        throw Option.invalidValue(FILL, value, "a share must be from 0 to " + SlotTable.WEIGHT_MAX);
      }
      if (share > 0 && !planned.router().isOpen(partition)) {
        throw Option.invalidValue(FILL, value, "partition " + partition + " is closed: name open partitions");
      }
      all[partition] = share.intValue();
    });
    if (shares.values().stream().noneMatch(share -> share > 0)) {
      throw Option.invalidValue(FILL, shares.toString(), "one partition at least must have a share above 0");
    }
    this.fill = new Fill(untilMs, all);
  }

  @Override
  boolean isIn(State newest) {
    return newest.routing().flatMap(Routing::fill).equals(Optional.of(fill));
  }

  @Override
  NextVersion change(State newest) {
    requireRouting(newest);
    return new NextVersion(newest, "fill").fill(fill);
  }

  @Override
  String what() {
    return "the fill of topic " + log.topic();
  }
}
