package io.sparklog.catalog;

import io.sparklog.log.Names;
import io.sparklog.spec.Signature;
import io.sparklog.upkeep.Publisher;
import java.security.SecureRandom;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/** The procedures of the catalog. {@code spec/procedures.json} says what each takes and returns. */
final class Procedures {
  private static final SecureRandom RANDOM = new SecureRandom();

  private static final Map<String, TopicProcedure.Body> BODIES = Map.of("topics", Listings::topics, "segments", Listings::segments,
      "publish", Procedures::publish);

  static final List<TopicProcedure> ALL = Signature.all()
      .stream()
      .map(each -> new TopicProcedure(each, Objects.requireNonNull(BODIES.get(each.name()), each.name())))
      .toList();

  private Procedures() {}

  /** The procedure called {@code name}, in any case. */
  static Optional<TopicProcedure> named(String name) {
    return ALL.stream().filter(procedure -> procedure.name().equalsIgnoreCase(name)).findFirst();
  }

  private static void publish(Call call) {
    call.state();
    call.row(Publisher.publish(call.log(), Names.identity(RANDOM)));
  }
}
