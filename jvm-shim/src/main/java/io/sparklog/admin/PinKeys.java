package io.sparklog.admin;

import io.sparklog.log.NextVersion;
import io.sparklog.log.Routing;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.partition.Pins;
import io.sparklog.spec.Option;
import io.sparklog.spec.PartlogException;
import java.util.Arrays;
import java.util.Collection;

/** Pins keys to a partition, or ends their pins. FORMAT.md sections 5 and 13. */
final class PinKeys extends AdministrativeChange {
  private static final String KEY = "key";
  private static final String PARTITION = "partition";
  /** Bytes of a key that an error shows. */
  private static final int BYTES_SHOWN = 20;

  private final TopicLog log;
  private final Pins changes;

  private PinKeys(TopicLog log, State planned, Pins changes) {
    super(log, planned);
    this.log = log;
    this.changes = changes;
  }

  /** @throws PartlogException PARTITION_NOT_FOUND; PARTITION_CLOSED; OPTION_VALUE for a key that is too long, and for too many pins */
  static PinKeys to(TopicLog log, State planned, Collection<byte[]> keys, int partition) {
    planned.requirePartition(PARTITION, log.store().root(), partition);
    Routing routing = planned.slots();
    if (routing.weights()[partition] == 0) {
      throw PartlogException.of("PARTITION_CLOSED", "partition", partition, "topic", log.topic(), "root", log.store().root());
    }
    keys.forEach(key -> {
      if (key.length > Pins.KEY_BYTES_MAX) {
        throw Option.invalidValue(KEY, Pins.shown(Arrays.copyOf(key, BYTES_SHOWN)) + "…",
            "it has " + key.length + " bytes, and a key that is pinned must have at most " + Pins.KEY_BYTES_MAX);
      }
    });
    Pins changes = changes(keys, partition);
    int after = routing.pins().after(changes).size();
    if (after > Pins.COUNT_MAX) {
      throw Option.invalidValue(KEY, changes.size() + " keys", "topic " + log.topic() + " would have " + after + " pins, and may have "
          + Pins.COUNT_MAX + ": unpin keys that need none, or take partitions of their own for busy keys by reroute");
    }
    return new PinKeys(log, planned, changes);
  }

  /** @throws PartlogException OPTION_VALUE if no key is given */
  static PinKeys ended(TopicLog log, State planned, Collection<byte[]> keys) {
    return new PinKeys(log, planned, changes(keys, Pins.ENDED));
  }

  private static Pins changes(Collection<byte[]> keys, int partition) {
    if (keys.isEmpty()) {
      throw Option.invalidValue(KEY, "[]", "it must name a key");
    }
    return Pins.of(keys, partition);
  }

  @Override
  boolean isIn(State newest) {
    return newest.slots().pins().changedBy(changes).isEmpty();
  }

  @Override
  NextVersion change(State newest) {
    requireRouting(newest);
    requireNoNote(newest);
    return new NextVersion(newest, "reroute").pin(log, newest.slots().pins().changedBy(changes));
  }

  @Override
  String what() {
    return "the pins of topic " + log.topic();
  }
}
