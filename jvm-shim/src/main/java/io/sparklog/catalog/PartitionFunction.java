package io.sparklog.catalog;

import io.sparklog.routing.Partitioner;
import io.sparklog.routing.Router;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.PartlogException;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;

/**
 * {@code partlog.murmur3_partition(key, partitions)} and {@code partlog.murmur2_partition(key, partitions)} in SQL: the partition
 * where the sink puts a record with this key, in a topic with this number of partitions. NULL for a null key: records without a key have no
 * partition of their own.
 */
abstract class PartitionFunction implements UnboundFunction, ScalarFunction<Integer> {
  private static final List<PartitionFunction> ALL = List.of(new Murmur3(), new Murmur2());

  private final Partitioner partitioner;

  PartitionFunction(Partitioner partitioner) {
    this.partitioner = partitioner;
  }

  /** The function called {@code name}, in any case. */
  static Optional<PartitionFunction> named(String name) {
    return ALL.stream().filter(function -> function.name().equalsIgnoreCase(name)).findFirst();
  }

  static List<PartitionFunction> all() {
    return ALL;
  }

  /**
   * Spark's generated code calls {@code invoke}, which must be a method of the bound class itself, with the Java types of {@link
   * #inputTypes}.
   */
  public static final class Murmur3 extends PartitionFunction {
    private Murmur3() {
      super(Partitioner.MURMUR3);
    }

    public static Integer invoke(byte[] key, int partitions) {
      return place(Partitioner.MURMUR3, key, partitions);
    }
  }

  /** As {@link Murmur3}. */
  public static final class Murmur2 extends PartitionFunction {
    private Murmur2() {
      super(Partitioner.MURMUR2);
    }

    public static Integer invoke(byte[] key, int partitions) {
      return place(Partitioner.MURMUR2, key, partitions);
    }
  }

  private static Integer place(Partitioner partitioner, byte[] key, int partitions) {
    if (partitions < 1 || partitions > Router.PARTITIONS_MAX) {
      return SparkErrors.run(() -> {
        String reason = "it must be an integer from 1 to " + Router.PARTITIONS_MAX;
        throw PartlogException.of("OPTION_VALUE", "option", "partitions", "value", partitions, "reason", reason);
      });
    }
    return key == null ? null : Integer.valueOf(Router.ofKey(partitioner, partitions, key));
  }

  @Override
  public String name() {
    return partitioner.optionName() + "_partition";
  }

  @Override
  public String canonicalName() {
    return "partlog." + name();
  }

  @Override
  public String description() {
    return name() + "(key, partitions): the partition of records with this key";
  }

  @Override
  public BoundFunction bind(StructType input) {
    if (input.size() == 2 && isKey(input.apply(0).dataType()) && input.apply(1).dataType() instanceof IntegerType) {
      return this;
    }
    throw new UnsupportedOperationException(name() + " takes (key STRING or BINARY, partitions INT), not " + input.catalogString());
  }

  private static boolean isKey(DataType type) {
    return type instanceof BinaryType || type instanceof StringType || type instanceof NullType;
  }

  /** A STRING is cast to its UTF-8 bytes by Spark. */
  @Override
  public DataType[] inputTypes() {
    return new DataType[] {DataTypes.BinaryType, DataTypes.IntegerType};
  }

  @Override
  public DataType resultType() {
    return DataTypes.IntegerType;
  }
}
