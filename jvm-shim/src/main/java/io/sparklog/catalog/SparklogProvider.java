package io.sparklog.catalog;

/** {@code format("sparklog")}: {@code format("partlog")} by the name of the product. Catalog and settings have the name of the format. */
public final class SparklogProvider extends PartlogProvider {
  /** Spark asks for a public constructor without arguments. */
  public SparklogProvider() {}

  @Override
  public String shortName() {
    return "sparklog";
  }
}
