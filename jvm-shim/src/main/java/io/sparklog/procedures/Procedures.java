package io.sparklog.procedures;

import io.sparklog.spec.Signature;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/** The procedures of the catalog. {@code spec/procedures.json} says what each takes and returns. */
public final class Procedures {
  private static final Map<String, TopicProcedure.Body> BODIES = Map.of("topics", Listings::topics, "segments", Listings::segments,
      "delete_records", Operations::deleteRecords, "add_partitions", Operations::addPartitions, "set_config", Operations::setConfig,
      "delete_topic", Operations::deleteTopic, "merge", Operations::merge, "expire", Operations::expire, "vacuum", Operations::vacuum,
      "publish", Operations::publish);

  public static final List<TopicProcedure> ALL = Signature.all()
      .stream()
      .map(each -> new TopicProcedure(each, Objects.requireNonNull(BODIES.get(each.name()), each.name())))
      .toList();

  private Procedures() {}

  /** The procedure called {@code name}, in any case. */
  public static Optional<TopicProcedure> named(String name) {
    return ALL.stream().filter(procedure -> procedure.name().equalsIgnoreCase(name)).findFirst();
  }
}
