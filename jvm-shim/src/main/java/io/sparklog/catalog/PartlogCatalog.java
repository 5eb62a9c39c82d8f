package io.sparklog.catalog;

import io.sparklog.procedures.Procedures;
import io.sparklog.procedures.TopicProcedure;
import io.sparklog.spark.Connector;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.PartlogException;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** {@code spark.sql.catalog.partlog}: what SQL can do beyond reading and writing. All of it is in the empty namespace. */
public final class PartlogCatalog implements FunctionCatalog, ProcedureCatalog {
  private String name;

  /** Spark asks for a public constructor without arguments. */
  public PartlogCatalog() {}

  @Override
  public void initialize(String catalogName, CaseInsensitiveStringMap options) {
    name = catalogName;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Identifier[] listFunctions(String[] namespace) {
    return namespace.length > 0
        ? new Identifier[0]
        : PartitionFunction.all().stream().map(function -> Identifier.of(namespace, function.name())).toArray(Identifier[]::new);
  }

  @Override
  public UnboundFunction loadFunction(Identifier function) throws NoSuchFunctionException {
    if (function.namespace().length > 0) {
      throw new NoSuchFunctionException(function);
    }
    return PartitionFunction.named(function.name()).orElseThrow(() -> new NoSuchFunctionException(function));
  }

  @Override
  public Identifier[] listProcedures(String[] namespace) {
    return namespace.length > 0
        ? new Identifier[0]
        : Procedures.ALL.stream().map(procedure -> Identifier.of(namespace, procedure.name())).toArray(Identifier[]::new);
  }

  /** Throws errors of Spark's kind only: Spark reports any other as FAILED_TO_LOAD_ROUTINE, without its text. */
  @Override
  public UnboundProcedure loadProcedure(Identifier procedure) {
    SparkErrors.act(Connector::requireOfApplication);
    Optional<TopicProcedure> known = procedure.namespace().length > 0 ? Optional.empty() : Procedures.named(procedure.name());
    if (known.isPresent()) {
      return known.get();
    }
    return SparkErrors.run(() -> {
      String asked = String.join(".", procedure.namespace()) + (procedure.namespace().length == 0 ? "" : ".") + procedure.name();
      throw PartlogException.of("PROCEDURE_NOT_FOUND", "catalog", name, "procedure", asked, "procedures",
          Procedures.ALL.stream().map(TopicProcedure::name).collect(Collectors.joining(", ")));
    });
  }
}
