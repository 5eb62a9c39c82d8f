package io.sparklog.catalog;

import static java.util.Map.entry;

import io.sparklog.spec.Signature;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/** The procedures of the catalog. {@code spec/procedures.json} has the arguments and columns of each. */
final class Procedures {
  private static final Map<String, TopicProcedure.Implementation> IMPLEMENTATIONS = Map.ofEntries(entry("topics", Listings::topics),
      entry("segments", Listings::segments), entry("delete_records", Operations::deleteRecords),
      entry("add_partitions", Operations::addPartitions), entry("close_partitions", Operations::closePartitions),
      entry("reroute", Operations::reroute), entry("rebuild", Operations::rebuild), entry("move_slots", Operations::moveSlots),
      entry("set_config", Operations::setConfig), entry("delete_topic", Operations::deleteTopic), entry("merge", Operations::merge),
      entry("expire", Operations::expire), entry("vacuum", Operations::vacuum), entry("publish", Operations::publish),
      entry("export", Operations::export), entry("check_store", Operations::checkStore));

  public static final List<TopicProcedure> ALL = Signature.all()
      .stream()
      .map(each -> new TopicProcedure(each, Objects.requireNonNull(IMPLEMENTATIONS.get(each.name()), each.name())))
      .toList();

  private Procedures() {}

  /** The procedure called {@code name}, in any case. */
  public static Optional<TopicProcedure> named(String name) {
    return ALL.stream().filter(procedure -> procedure.name().equalsIgnoreCase(name)).findFirst();
  }
}
