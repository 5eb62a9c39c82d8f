package io.sparklog.format;

import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.Tuple;

/** Random records for the properties. */
final class Batches {
  private static final long NOON = 1_700_000_000_000L;

  private Batches() {}

  static Arbitrary<List<PlainRecord>> records() {
    Arbitrary<String> bytes = Arbitraries.oneOf(
        Arbitraries.bytes().array(byte[].class).ofMaxSize(80).map(b -> PlainRecord.hex(b, 0, b.length)),
        // Where the size of the length changes, and something that compresses.
        Combinators.combine(Arbitraries.of(63, 64, 8191, 8192, 70_000), Arbitraries.bytes())
            .as((length, b) -> String.format("%02x", b).repeat(length)));
    Arbitrary<String> nullable = frequent(bytes).injectNull(0.15);
    Arbitrary<PlainRecord.Header> header = Combinators
        .combine(Arbitraries.bytes().array(byte[].class).ofMaxSize(80).map(b -> PlainRecord.hex(b, 0, b.length)),
            Arbitraries.bytes().array(byte[].class).ofMaxSize(200).map(b -> PlainRecord.hex(b, 0, b.length)).injectNull(0.2))
        .as(PlainRecord.Header::new);
    Arbitrary<Long> timestamp = Arbitraries.frequencyOf(Tuple.of(8, Arbitraries.longs().between(NOON, NOON + 10_000)),
        Tuple.of(2, Arbitraries.longs().between(0, 4_000_000_000_000L)), Tuple.of(1, Arbitraries.longs().between(0, Long.MAX_VALUE)));
    Arbitrary<List<PlainRecord.Header>> headersOfRecord = Arbitraries.frequencyOf(Tuple.of(3, Arbitraries.just(List.of())),
        Tuple.of(1, header.list().ofMaxSize(5)));
    Arbitrary<PlainRecord> record = Combinators.combine(timestamp, nullable, nullable, headersOfRecord)
        .as((time, key, value, headers) -> new PlainRecord(0, time, key, value, headers));
    return record.list().ofMinSize(1).ofMaxSize(30).map(Batches::numbered);
  }

  private static Arbitrary<String> frequent(Arbitrary<String> bytes) {
    Arbitrary<String> usual = Arbitraries.bytes().array(byte[].class).ofMaxSize(30).map(b -> PlainRecord.hex(b, 0, b.length));
    return Arbitraries.frequencyOf(Tuple.of(9, usual), Tuple.of(1, bytes));
  }

  private static List<PlainRecord> numbered(List<PlainRecord> records) {
    PlainRecord[] result = new PlainRecord[records.size()];
    for (int i = 0; i < result.length; i++) {
      PlainRecord r = records.get(i);
      result[i] = new PlainRecord(i, r.timestamp(), r.key(), r.value(), r.headers());
    }
    return List.of(result);
  }
}
