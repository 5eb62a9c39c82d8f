package io.sparklog.source;

import io.sparklog.routing.Partitioner;
import io.sparklog.routing.Router;
import java.io.Serializable;
import java.math.BigInteger;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.Reducer;
import org.apache.spark.sql.connector.catalog.functions.ReducibleFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * {@code murmur3_partition_8(key)}: the function that a scan says its records are grouped by. Spark takes two groupings to be the same if
 * the names of their functions are, so the name has all that decides. It is for Spark: SQL has {@code murmur3_partition(key, 8)}.
 *
 * <p>Two numbers of partitions are joined in groups by their greatest common divisor. Spark 4.2.0 forgets the reducer after the join. It
 * goes on as if the function gave the groups, and the next join loses rows (SPARK-59045, SPARK-59121). So the function of a scan, which
 * Spark makes for each, remembers into how few groups its records were put.
 */
public final class KeyRouting implements UnboundFunction, ScalarFunction<Integer>, ReducibleFunction<Integer, Integer>, Serializable {
  private static final long serialVersionUID = 1;
  private static final Pattern NAME = Pattern.compile("(murmur[23])_partition_([1-9][0-9]{0,4})");

  private final Partitioner partitioner;
  private final int partitions;
  private final DataType keyType;

  /** The number of every grouping of its records, so far, is a multiple of this. */
  private final AtomicInteger groups;

  private KeyRouting(Partitioner partitioner, int partitions, DataType keyType) {
    this.partitioner = partitioner;
    this.partitions = partitions;
    this.keyType = keyType;
    this.groups = new AtomicInteger(partitions);
  }

  /** The function that puts keys where a topic without slots does that has so many partitions. */
  static KeyRouting of(Partitioner partitioner, int partitions) {
    return new KeyRouting(partitioner, partitions, DataTypes.BinaryType);
  }

  /** The function of this name. */
  public static Optional<UnboundFunction> named(String name) {
    Matcher parts = NAME.matcher(name);
    if (!parts.matches() || Integer.parseInt(parts.group(2)) > Router.PARTITIONS_MAX) {
      return Optional.empty();
    }
    return Optional.of(of(Partitioner.named(parts.group(1)), Integer.parseInt(parts.group(2))));
  }

  /** How many partitions may have records. */
  int partitions() {
    return partitions;
  }

  @Override
  public BoundFunction bind(StructType input) {
    DataType type = input.size() == 1 ? input.apply(0).dataType() : DataTypes.NullType;
    if (type.equals(DataTypes.BinaryType) || type.equals(DataTypes.StringType)) {
      return new KeyRouting(partitioner, partitions, type);
    }
    throw new UnsupportedOperationException(name() + " takes (key STRING or BINARY), not " + input.catalogString());
  }

  @Override
  public Integer produceResult(InternalRow row) {
    if (row.isNullAt(0)) {
      return null;
    }
    byte[] key = keyType.equals(DataTypes.BinaryType) ? row.getBinary(0) : row.getUTF8String(0).getBytes();
    return Router.ofKey(partitioner, partitions, key);
  }

  /**
   * Null where Spark must shuffle: the hashes differ, or all records would come into one task. It is null too where no reducer is needed,
   * such as for equal numbers of partitions. It is also null if a setting lets Spark shuffle one side alone: Spark would shuffle by this
   * function, although the other side may have other groups then.
   */
  @Override
  public Reducer<Integer, Integer> reducer(ReducibleFunction<?, ?> other) {
    if (!(other instanceof KeyRouting function) || function.partitioner != partitioner || SQLConf.get().v2BucketingShuffleEnabled()) {
      return null;
    }
    int common = gcd(groups.get(), function.groups.get());
    // Spark takes equal functions for equal groups, without a reducer too; so there must be one if it is needed.
    boolean isNeeded = common > 1 || function.partitions == partitions;
    return isNeeded && common < partitions ? new Modulo(this, common) : null;
  }

  private static int gcd(int one, int other) {
    return BigInteger.valueOf(one).gcd(BigInteger.valueOf(other)).intValueExact();
  }

  /** A partition, or a group of some, as the group in which the other side has the same keys. */
  private record Modulo(KeyRouting function, int common) implements Reducer<Integer, Integer>, Serializable {
    @Override
    public Integer reduce(Integer partition) {
      function.groups.accumulateAndGet(common, KeyRouting::gcd);
      return partition == null ? null : Integer.valueOf(partition % common);
    }

    @Override
    public DataType resultType() {
      return DataTypes.IntegerType;
    }

    @Override
    public String displayName() {
      return toString();
    }

    @Override
    public String toString() {
      return "partition % " + common;
    }
  }

  @Override
  public String name() {
    return partitioner.optionName() + "_partition_" + partitions;
  }

  @Override
  public String canonicalName() {
    return "partlog." + name();
  }

  @Override
  public String description() {
    return name() + "(key): the partition of records with this key";
  }

  @Override
  public DataType[] inputTypes() {
    return new DataType[] {keyType};
  }

  @Override
  public DataType resultType() {
    return DataTypes.IntegerType;
  }

  /** Equal if the results are equal: Spark compares plans. */
  @Override
  public boolean equals(Object other) {
    return other instanceof KeyRouting same && partitioner == same.partitioner && partitions == same.partitions
        && keyType.equals(same.keyType);
  }

  @Override
  public int hashCode() {
    return 31 * partitions + keyType.hashCode();
  }
}
