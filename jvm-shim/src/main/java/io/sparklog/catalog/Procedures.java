package io.sparklog.catalog;

import java.util.List;
import java.util.Optional;

/** The procedures of the catalog. */
final class Procedures {
  static final List<RootProcedure> ALL = List.of(new PublishProcedure());

  private Procedures() {}

  /** The procedure called {@code name}, in any case. */
  static Optional<RootProcedure> named(String name) {
    return ALL.stream().filter(procedure -> procedure.name().equalsIgnoreCase(name)).findFirst();
  }
}
