import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts words by Kafka Streams until its standard input ends: {@code WordCount ADDRESS INPUT OUTPUT STATE}. Words are repartitioned, and
 * their counts are kept in memory, so that each start restores them from the changelog. The last line is the number of restored records.
 */
final class WordCount {
  private WordCount() {}

  public static void main(String[] arguments) throws Exception {
    Properties settings = new Properties();
    settings.put("bootstrap.servers", arguments[0]);
    settings.put("application.id", "count-" + arguments[1]);
    settings.put("state.dir", arguments[3]);
    settings.put("default.key.serde", Serdes.StringSerde.class);
    settings.put("default.value.serde", Serdes.StringSerde.class);
    settings.put("commit.interval.ms", "200");
    settings.put("consumer.auto.offset.reset", "earliest");
    settings.put("consumer.session.timeout.ms", "10000");

    StreamsBuilder builder = new StreamsBuilder();
    builder.<String, String>stream(arguments[1])
        .selectKey((key, word) -> word)
        .groupByKey()
        .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts")).withValueSerde(Serdes.Long()))
        .toStream()
        .mapValues(count -> Long.toString(count))
        .to(arguments[2], Produced.with(Serdes.String(), Serdes.String()));

    AtomicLong restored = new AtomicLong();
    try (KafkaStreams streams = new KafkaStreams(builder.build(), settings)) {
      streams.setGlobalStateRestoreListener(new StateRestoreListener() {
        @Override
        public void onRestoreStart(TopicPartition partition, String store, long start, long end) {}

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long records) {}

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long records) {
          restored.addAndGet(records);
        }
      });
      streams.start();
      System.in.transferTo(System.out);
    }
    System.out.println(restored);
  }
}
