package io.sparklog.catalog;

import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** {@code spark.sql.catalog.partlog}: what SQL can ask for beyond reading and writing. */
public final class PartlogCatalog implements ProcedureCatalog {
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
  public Identifier[] listProcedures(String[] namespace) {
    return namespace.length == 0 ? new Identifier[] {Identifier.of(namespace, PublishProcedure.NAME)} : new Identifier[0];
  }

  @Override
  public UnboundProcedure loadProcedure(Identifier procedure) {
    if (procedure.name().equalsIgnoreCase(PublishProcedure.NAME)) {
      return new PublishProcedure();
    }
    throw new UnsupportedOperationException("catalog " + name + " has the procedure publish, and none called " + procedure.name());
  }
}
