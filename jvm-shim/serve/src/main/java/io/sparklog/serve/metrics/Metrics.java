package io.sparklog.serve.metrics;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;

/**
 * The metrics of a process, and their text. A metric is declared once, and then counted by any thread. A value of a label makes a series
 * that stays: labels of counters have few values.
 */
public final class Metrics {
  /** The bounds of the buckets of times, in seconds. */
  private static final double[] BOUNDS = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

  private static final double NANOS = 1e9;

  private final List<Family> families = new CopyOnWriteArrayList<>();

  /** A metric with its help, which can say its series. */
  private record Family(String name, String type, String help, List<String> labels, Supplier<? extends Iterable<Sample>> samples) {}

  /**
   * A value of a metric.
   *
   * @param labels the values of the labels, in the order of their names
   */
  public record Sample(List<String> labels, double value) {
    public Sample {
      labels = List.copyOf(labels);
    }

    public static Sample of(double value, String... labels) {
      return new Sample(List.of(labels), value);
    }
  }

  /** Numbers that only grow, one for each value of the labels. */
  public static final class Counter {
    private final Map<List<String>, LongAdder> series = new ConcurrentHashMap<>();

    public void add(long amount, String... labels) {
      series.computeIfAbsent(List.of(labels), of -> new LongAdder()).add(amount);
    }

    private List<Sample> samples() {
      return series.entrySet().stream().map(each -> new Sample(each.getKey(), each.getValue().sum())).toList();
    }
  }

  /** Times by buckets, for each value of one label. */
  public static final class Timer {
    private final Map<String, Buckets> series = new ConcurrentHashMap<>();
    private final String label;

    private Timer(String label) {
      this.label = label;
    }

    private static final class Buckets {
      final LongAdder[] counts = new LongAdder[BOUNDS.length + 1];
      final LongAdder nanos = new LongAdder();

      Buckets() {
        for (int i = 0; i < counts.length; i++) {
          counts[i] = new LongAdder();
        }
      }
    }

    public void add(String of, long nanos) {
      Buckets buckets = series.computeIfAbsent(of, key -> new Buckets());
      int i = 0;
      while (i < BOUNDS.length && nanos > BOUNDS[i] * NANOS) {
        i++;
      }
      buckets.counts[i].increment();
      buckets.nanos.add(nanos);
    }

    private void write(StringBuilder text, String name) {
      series.forEach((of, buckets) -> {
        long sum = 0;
        for (int i = 0; i < buckets.counts.length; i++) {
          sum += buckets.counts[i].sum();
          String bound = i < BOUNDS.length ? Double.toString(BOUNDS[i]) : "+Inf";
          line(text, name + "_bucket", List.of(label, "le"), Sample.of(sum, of, bound));
        }
        line(text, name + "_count", List.of(label), Sample.of(sum, of));
        line(text, name + "_sum", List.of(label), Sample.of(buckets.nanos.sum() / NANOS, of));
      });
    }
  }

  private final Map<String, Timer> times = new ConcurrentHashMap<>();

  /** Declares a metric that is counted. @param name ends with {@code _total} */
  public Counter counter(String name, String help, String... labels) {
    Counter counter = new Counter();
    if (labels.length == 0) {
      counter.add(0); // It has its only series from the start.
    }
    families.add(new Family(name, "counter", help, List.of(labels), counter::samples));
    return counter;
  }

  /** Declares a metric of times. @param name ends with {@code _seconds} */
  public Timer times(String name, String help, String label) {
    Timer declared = new Timer(label);
    times.put(name, declared);
    families.add(new Family(name, "histogram", help, List.of(label), List::of));
    return declared;
  }

  /** Declares a metric whose values are asked for when somebody asks for the text. */
  public void gauge(String name, String help, List<String> labels, Supplier<? extends Iterable<Sample>> samples) {
    families.add(new Family(name, "gauge", help, List.copyOf(labels), samples));
  }

  /** Declares a metric that only grows, and that another class counts. @param name ends with {@code _total} */
  public void total(String name, String help, Supplier<? extends Number> value) {
    families.add(new Family(name, "counter", help, List.of(), () -> List.of(Sample.of(value.get().doubleValue()))));
  }

  /** As {@link #gauge}, for one value. */
  public void gauge(String name, String help, Supplier<? extends Number> value) {
    gauge(name, help, List.of(), () -> List.of(Sample.of(value.get().doubleValue())));
  }

  /** All metrics in Prometheus' text form, version 0.0.4. */
  public String text() {
    StringBuilder text = new StringBuilder();
    for (Family family : families) {
      text.append("# HELP ").append(family.name).append(' ').append(family.help.replace("\\", "\\\\").replace("\n", "\\n")).append('\n');
      text.append("# TYPE ").append(family.name).append(' ').append(family.type).append('\n');
      if (times.containsKey(family.name)) {
        times.get(family.name).write(text, family.name);
      } else {
        family.samples.get().forEach(sample -> line(text, family.name, family.labels, sample));
      }
    }
    return text.toString();
  }

  private static void line(StringBuilder text, String name, List<String> labels, Sample sample) {
    text.append(name);
    List<String> pairs = new ArrayList<>();
    for (int i = 0; i < labels.size(); i++) {
      pairs.add(labels.get(i) + "=\"" + escaped(sample.labels.get(i)) + "\"");
    }
    text.append(pairs.isEmpty() ? "" : "{" + String.join(",", pairs) + "}").append(' ').append(sample.value).append('\n');
  }

  private static String escaped(String value) {
    return value.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n");
  }
}
