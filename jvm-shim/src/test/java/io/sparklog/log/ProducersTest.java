package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import com.fasterxml.jackson.databind.JsonNode;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import io.sparklog.kit.MutatedClasses;
import io.sparklog.log.ProducerBatches.Producer;
import io.sparklog.log.ProducerBatches.ProducerBatch;
import io.sparklog.log.Producers.Sent;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Random histories of producers, beside a model that looks at all producers for each version. FORMAT.md annex B. */
final class ProducersTest {
  private static final int SEEDS = 60;
  private static final int VERSIONS = 300;

  @Test
  void theProducersAreThoseOfTheModel() throws Damaged {
    for (long seed = 0; seed < SEEDS; seed++) {
      assertNull(failure(seed), "seed " + seed);
    }
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {"log/Producers.after|time - found.oldest().time() >=|time - found.oldest().time() >",
      "log/Producers.after|> config.producersMax()|> config.producersMax() + 1",
      "log/Producers.after|each.producer, each.epoch, time,|each.producer, each.epoch, 0,",
      "log/ProducerBatches.with|known.epoch == epoch|known.epoch <= epoch", "log/ProducerBatches.with|- BATCHES_KEPT|- 4",
      "log/ProducerBatches.parse|before.compareTo(producer) < 0|before.compareTo(producer) > 0",
      "log/ProducerTree.without|balanced(tree.left, next,|balanced(tree.left, tree.last,", "log/ProducerTree.with|order < 0|order > 0",
      "log/ProducerTree.<init>|right.oldest.time() < first.time()|right.oldest.time() <= first.time()",
      "log/ProducerTree.<init>|left.oldest.time() <= last.time()|left.oldest.time() < last.time()",
      "log/ProducerTree.balanced|height(left) > height(right) + 1|false",
      "log/ProducerTree.balanced|height(left.left) >= height(left.right)|true"})
  void aBrokenRuleIsFound(String method, String from, String to) throws Throwable {
    Class<?> test = MutatedClasses.of(method, from, to).like(ProducersTest.class);
    MethodHandle failure = MethodHandles.privateLookupIn(test, MethodHandles.lookup())
        .findStatic(test, "failure", MethodType.methodType(String.class, long.class));
    String found = null;
    for (long seed = 0; seed < SEEDS && found == null; seed++) {
      found = (String) failure.invoke(seed);
    }
    assertNotNull(found);
  }

  @Test
  void producersOfOneTimeLeaveByPartitionThenById() throws Damaged {
    TopicConfig config = config(2, 1_000);
    List<Sent> sent = new ArrayList<>();
    for (int partition = 1; partition >= 0; partition--) {
      for (int id = 2; id > 0; id--) {
        sent.add(new Sent(new Producer(partition, id), 0, new ProducerBatch(0, id, id + 1)));
      }
    }
    List<Producer> left = new ArrayList<>();
    Producers.NONE.after(sent, new long[2], 5, config).forEach(last -> left.add(last.producer()));
    assertEquals(List.of(new Producer(1, 1), new Producer(1, 2)), left);
  }

  private static TopicConfig config(int most, long expirationMs) throws Damaged {
    return new TopicConfig(Map.of("partitions", "2", "partitioner", "murmur3", "compression.type", "none", "segment.bytes", "1048576",
        "max.message.bytes", "1000", "message.timestamp.type", "CreateTime", "index.interval.bytes", "4096", "producer.ids.max",
        Integer.toString(most), "producer.id.expiration.ms", Long.toString(expirationMs)));
  }

  /** A difference from the model; null without a difference. */
  static String failure(long seed) {
    Random random = new Random(seed);
    try {
      int most = 1 + random.nextInt(40);
      TopicConfig config = config(most, 50);
      TreeMap<Producer, ProducerBatches> model = new TreeMap<>();
      Producers producers = Producers.NONE;
      List<Map<Producer, ProducerBatches>> models = new ArrayList<>();
      List<Producers> states = new ArrayList<>();
      long[] ends = new long[2];
      long time = 1000;
      for (int version = 0; version < VERSIONS; version++) {
        time += List.of(-30, 0, 0, 1, 5, 60).get(random.nextInt(6));
        long[] before = ends.clone();
        List<Sent> sent = new ArrayList<>();
        for (int i = random.nextInt(6); i > 0; i--) {
          // Ids that rise and fall, and random ones: each way of balancing the tree comes up.
          long id = List.of(version, VERSIONS - version, random.nextInt(50)).get(random.nextInt(3));
          Producer producer = new Producer(random.nextInt(2), id);
          ProducerBatches known = model.get(producer);
          boolean goesOn = known != null && random.nextInt(4) > 0;
          int epoch = known == null ? random.nextInt(3) : goesOn ? known.epoch() : known.epoch() + 1;
          ProducerBatch last = goesOn ? known.batches().get(known.batches().size() - 1) : null;
          long first = goesOn ? last.first() + last.end() - last.base() : 0;
          long base = ends[producer.partition()];
          ProducerBatch batch = new ProducerBatch(first, base, base + 1 + random.nextInt(3));
          ends[producer.partition()] = batch.end();
          sent.add(new Sent(producer, epoch, batch));
          List<ProducerBatch> batches = new ArrayList<>(goesOn ? known.batches() : List.of());
          batches.add(batch);
          model.put(producer, new ProducerBatches(producer, epoch, time, batches.subList(Math.max(0, batches.size() - 5), batches.size())));
        }
        long now = time;
        model.values().removeIf(last -> now - last.time() >= 50);
        model.values()
            .stream()
            .sorted(Comparator.comparingLong(ProducerBatches::time).thenComparing(ProducerBatches::producer))
            .limit(Math.max(0, model.size() - most))
            .toList()
            .forEach(last -> model.remove(last.producer()));
        producers = producers.after(sent, before, time, config);
        states.add(producers);
        models.add(new TreeMap<>(model));
        if (random.nextInt(20) == 0) {
          producers = again(producers, ends);
        }
      }
      for (int i = 0; i < VERSIONS; i++) {
        Map<Producer, ProducerBatches> found = found(states.get(i));
        if (!found.equals(models.get(i)) || states.get(i).count() != found.size() || !isBalanced(states.get(i))) {
          return "version " + i + " has " + found + ", expected " + models.get(i);
        }
      }
      return null;
    } catch (Damaged | RuntimeException | StackOverflowError e) {
      return e.toString();
    }
  }

  /** As from a checkpoint. */
  private static Producers again(Producers producers, long[] ends) throws Damaged {
    List<JsonNode> lines = new ArrayList<>();
    producers.forEach(last -> lines.add(last.line()));
    List<ProducerBatches> read = new ArrayList<>();
    for (JsonNode line : lines) {
      byte[] bytes = line.toString().getBytes(StandardCharsets.UTF_8);
      read.add(
          ProducerBatches.parse(Json.parse(bytes, 0, bytes.length), ends, read.isEmpty() ? null : read.get(read.size() - 1).producer()));
    }
    return Producers.of(read);
  }

  /** A tree of such heights has at least so many nodes: those of Fibonacci. */
  private static boolean isBalanced(Producers producers) {
    int least = 0;
    int next = 1;
    for (int height = ProducerTree.height(producers.tree()); height > 0; height--) {
      int after = least + next + 1;
      least = next;
      next = after;
    }
    return producers.count() >= least;
  }

  private static Map<Producer, ProducerBatches> found(Producers producers) {
    Map<Producer, ProducerBatches> found = new TreeMap<>();
    producers.forEach(last -> {
      ProducerBatches known = producers.last(last.producer());
      if (!last.equals(known)) {
        throw new IllegalStateException(last + " is found as " + known);
      }
      found.put(last.producer(), last);
    });
    return found;
  }
}
