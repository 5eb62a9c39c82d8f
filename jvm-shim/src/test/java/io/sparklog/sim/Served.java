package io.sparklog.sim;

import io.sparklog.log.State;
import io.sparklog.commits.AppendResult;
import io.sparklog.commits.AppendRefused;
import io.sparklog.commits.SteppedWriters;
import io.sparklog.spec.PartlogException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.stream.IntStream;

/**
 * The actors of a root that is served: servers of one topic, and producers, which send to any of them and send a batch again until it is
 * acknowledged. Answers are lost, servers start again without what they had received, and a server that slept does what it was asked
 * before.
 */
final class Served {
  private static final int SERVERS = 3;
  private static final int IN_FLIGHT_MAX = 5;
  private static final int LOOKS_MAX = 8;
  /** As the clients: a producer begins with new numbers if a batch is not acknowledged in time. */
  private static final long DELIVERY_MS = 120_000;

  /** A batch that a producer sent to a server, and the answer that the producer has got. */
  private static final class Request {
    private final long id;
    private final int partition;
    private final int first;
    private final int records;
    private final String text;
    private final long sinceMs;
    private AppendResult appended;
    private AppendRefused.Reason refusal;

    private Request(long id, int partition, int first, int records, String text, long sinceMs) {
      this.id = id;
      this.partition = partition;
      this.first = first;
      this.records = records;
      this.text = text;
      this.sinceMs = sinceMs;
    }

    private Request again() {
      return new Request(id, partition, first, records, text, sinceMs);
    }

    private List<String> values() {
      return IntStream.range(0, records).mapToObj(i -> text + i).toList();
    }
  }

  private static final class Server {
    private final Deque<Request> received = new ArrayDeque<>();
    private final Set<String> givenUp;
    private Process process;
    private SteppedWriters writers;
    /** How often it has started: its clients notice. */
    private int starts;

    private Server(Set<String> givenUp) {
      this.givenUp = givenUp;
    }

    private void serve(Process its) {
      process = its;
      begin();
      for (int n = 0; n < 200; n++) {
        process.sleep(1 + process.world.random.nextInt(8));
        if (process.world.chance(40)) {
          process.world.say(process.name + " starts again");
          received.clear();
          process.forget();
          begin();
        }
        take();
        if (!process.world.chance(4)) { // Otherwise the next batches share the commit: the topic may be another one when they come.
          writers.commit();
        }
        if (process.world.chance(4)) {
          writers.keepUp();
        }
      }
    }

    private void begin() {
      starts++;
      writers = new SteppedWriters(process.root(), process.clock, process.world.random);
    }

    private void take() {
      int life = process.world.truth.life();
      Optional<State> state = received.isEmpty() ? Optional.empty() : newest();
      for (Request request = received.poll(); request != null; request = received.poll()) {
        Request asked = request;
        look(asked);
        writers.append(Truth.TOPIC, state, asked.partition, asked.id, asked.first, asked.records, asked.text)
            .whenComplete((appended, failure) -> answer(asked, life, appended, failure));
      }
    }

    /** Empty if the topic does not exist; null if it cannot be read. */
    private Optional<State> newest() {
      int faults = process.faults();
      try {
        return process.latest().filter(latest -> !latest.isDeleted());
      } catch (PartlogException e) {
        process.excuse(e, faults, Set.of());
        return null;
      }
    }

    /** A server remembers a refused batch for some minutes. After a longer sleep, a later batch may be the first one of its producer. */
    private void look(Request request) {
      if (process.world.nowMs() - request.sinceMs > DELIVERY_MS) {
        givenUp.add(Long.toHexString(request.id));
      }
    }

    private void answer(Request request, int life, AppendResult appended, Throwable failure) {
      World world = process.world;
      look(request);
      if (world.scheduler.isOver()) {
        return;
      }
      Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
      world.say(process.name + " answers " + request.values() + " with " + (appended == null ? cause : appended));
      if (appended != null) {
        process.check(() -> world.truth.done(request.values(), life, Optional.empty()));
      } else if (!(cause instanceof AppendRefused)) {
        throw world.scheduler.fail("I10: " + process.name + " answers with " + cause, cause);
      }
      if (world.chance(5)) {
        world.say(process.name + "   and the answer is lost");
        return;
      }
      request.appended = appended;
      request.refusal = appended == null ? ((AppendRefused) cause).refusal() : null;
    }
  }

  /** A client that sends batches of one partition: the next ones while at most five are not acknowledged. */
  private static final class Producer {
    private final Process process;
    private final World world;
    private final List<Server> servers;
    private final Set<String> givenUp;
    private final List<Request> flying = new ArrayList<>();
    private Server server;
    private int connected;
    private int life = -1;
    private long id;
    private int partition;
    private int next;
    private int looks;

    private Producer(Process process, List<Server> servers, Set<String> givenUp) {
      this.process = process;
      this.world = process.world;
      this.servers = servers;
      this.givenUp = givenUp;
      choose();
      connected = server.starts;
    }

    private void choose() {
      server = servers.get(world.random.nextInt(servers.size()));
    }

    private void produce(int batches) {
      for (int sent = 0; sent < batches || !flying.isEmpty();) {
        process.sleep(2 + world.random.nextInt(15));
        if (life != world.truth.life()) { // Another topic does not know the numbers.
          begin();
        } else if (!flying.isEmpty() && world.nowMs() - flying.get(0).sinceMs > DELIVERY_MS) {
          world.say(process.name + " gives " + flying.get(0).values() + " up");
          givenUp.add(Long.toHexString(id));
          begin();
        }
        // A connection may end just after a batch was sent. Then two servers may commit the batch at the same time.
        if (hear() || server.starts != connected || world.chance(6)) {
          choose();
          connected = server.starts;
          flying.replaceAll(Request::again);
          server.received.addAll(flying);
        }
        for (; sent < batches && flying.size() < IN_FLIGHT_MAX && !world.chance(3); sent++) {
          send();
        }
      }
    }

    private void begin() {
      life = world.truth.life();
      id = world.random.nextLong() & Long.MAX_VALUE;
      partition = world.random.nextInt(world.partitions);
      next = 0;
      flying.clear();
    }

    private void send() {
      int records = 1 + world.random.nextInt(2);
      Request request = new Request(id, partition, next, records, process.name + "_" + Long.toHexString(id) + "_" + next + "_",
          world.nowMs());
      next += records;
      flying.add(request);
      server.received.add(request);
    }

    /** Looks for answers, in the order of the batches. @return whether the batches that have none must be sent again */
    private boolean hear() {
      looks++;
      while (!flying.isEmpty()) {
        Request first = flying.get(0);
        if (first.appended == null) {
          requireInOrder(first);
          boolean again = first.refusal != null || looks > LOOKS_MAX;
          looks = again ? 0 : looks;
          return again;
        }
        looks = 0;
        requireThere(first);
        flying.remove(0);
      }
      return false;
    }

    private void requireInOrder(Request first) {
      if (life == world.truth.life()
          && (first.refusal == AppendRefused.Reason.OUT_OF_ORDER || first.refusal == AppendRefused.Reason.OLD_EPOCH)) {
        throw world.scheduler.fail("I3: " + process.name + " hears " + first.refusal + " of its first batch " + first.values(), null);
      }
    }

    private void requireThere(Request first) {
      for (int i = 0; life == world.truth.life() && i < first.records; i++) {
        String there = world.truth.record(world.truth.top().topicId(), partition, first.appended.base() + i);
        if (!first.values().get(i).equals(there)) {
          throw world.scheduler.fail(
              "I3: " + process.name + " hears that " + first.values() + " is at " + first.appended.base() + ", where " + there + " is",
              null);
        }
      }
    }
  }

  private final World world;
  private final List<Server> servers = new ArrayList<>();
  /** The ids of producers of which a batch may be missing: a server may add a later batch that it received before. */
  private final Set<String> givenUp = new HashSet<>();

  Served(World world) {
    this.world = world;
  }

  /** Whether a client, or a coordinator, chose the partition of a record. */
  static boolean isOfClient(String record) {
    return record.indexOf('_') > 0 || record.indexOf(Coordinator.AFTER) > 0;
  }

  void start() {
    for (int n = 0; n < SERVERS; n++) {
      Server server = new Server(givenUp);
      servers.add(server);
      Process.start(world, "s" + n, server::serve);
    }
    for (int n = 0; n < 3; n++) {
      Process.start(world, "p" + n, process -> new Producer(process, servers, givenUp).produce(12));
    }
    Process.start(world, "a", process -> Writers.append(process, 4));
    Process.start(world, "r", process -> Readers.read(process, 5, true));
    for (int n = 0; n < 2; n++) {
      Process.start(world, "c" + n, process -> new Coordinator(process).coordinate(6));
    }
    Operators.start(world);
  }

  /** The records of each producer are in its order, and each record of a coordinator comes after the one that it names. */
  void requireOrdered() {
    Set<String> earlier = new HashSet<>(); // The records of producers in the topics that had the name before.
    for (String topicId : world.truth.topicIds()) {
      Set<String> here = new HashSet<>();
      for (int p = 0; p < world.partitions; p++) {
        Map<String, Integer> last = new HashMap<>();
        String before = Coordinator.NOTHING;
        String record;
        for (long offset = 0; (record = world.truth.record(topicId, p, offset)) != null; before = record, offset++) {
          String[] parts = record.split("_");
          if (parts.length == 4) {
            int number = Integer.parseInt(parts[2]) + Integer.parseInt(parts[3]);
            Integer known = last.put(parts[1], number);
            here.add(parts[1] + "_" + number);
            boolean isFirst = number == 0 || earlier.contains(parts[1] + "_" + (number - 1)) || givenUp.contains(parts[1]);
            if (known == null ? !isFirst : number != known + 1) {
              throw new Truth.Broken("I5: " + record + " comes after record " + known + " of its producer");
            }
          }
          Coordinator.requireAfter(record, before);
        }
      }
      earlier.addAll(here);
    }
  }
}
