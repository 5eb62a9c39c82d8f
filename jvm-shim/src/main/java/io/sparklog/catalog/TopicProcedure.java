package io.sparklog.catalog;

import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Signature;
import io.sparklog.upkeep.Uninterrupted;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.SimpleProcedure;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** {@code CALL partlog.<name>(root => '…', …)}: does the same for one topic of a root or for each, or something for the root. */
final class TopicProcedure implements SimpleProcedure {
  /** An error names this many topics. */
  private static final int TOPICS_SHOWN = 20;

  /** Its work for one topic, or for a root. */
  @FunctionalInterface
  interface Implementation {
    void run(Call call) throws IOException;
  }

  private final Signature signature;
  private final Implementation implementation;
  /** Types in SQL, by the type that is declared, where a call may choose. */
  private final Map<String, DataType> types;

  TopicProcedure(Signature signature, Implementation implementation) {
    this(signature, implementation, Map.of());
  }

  private TopicProcedure(Signature signature, Implementation implementation, Map<String, DataType> types) {
    this.signature = signature;
    this.implementation = implementation;
    this.types = types;
  }

  /**
   * {@code INTERVAL '7' DAY} and {@code INTERVAL '12' HOUR} have types of their own, and Spark converts none to another. A text is passed
   * as it is: Spark would ask for the long form of an interval. Keys are passed as they are, too: a key or an array of them, text or bytes.
   */
  @Override
  public BoundProcedure bind(StructType given) {
    Map<String, DataType> found = new HashMap<>();
    for (int i = 0; i < given.size(); i++) {
      DataType type = given.fields()[i].dataType();
      declared(given.fields()[i].name(), i).map(Signature.Parameter::type)
          .filter(declared -> Arguments.isTaken(declared, type))
          .ifPresent(declared -> found.put(declared, type));
    }
    // Spark binds until nothing changes.
    return found.isEmpty() ? this : new TopicProcedure(signature, implementation, Map.copyOf(found));
  }

  /** Spark gives an argument by name its name, and gives other arguments a name that no parameter has. */
  private Optional<Signature.Parameter> declared(String name, int position) {
    List<Signature.Parameter> declared = signature.parameters();
    return declared.stream()
        .filter(each -> each.name().equalsIgnoreCase(name))
        .findFirst()
        .or(() -> declared.stream().skip(position).findFirst());
  }

  @Override
  public String name() {
    return signature.name();
  }

  @Override
  public String description() {
    return signature.usage() + ": " + signature.text();
  }

  @Override
  public ProcedureParameter[] parameters() {
    return signature.parameters().stream().map(this::parameter).toArray(ProcedureParameter[]::new);
  }

  private ProcedureParameter parameter(Signature.Parameter declared) {
    DataType type = types.getOrDefault(declared.type(), Arguments.sqlType(declared.type()));
    ProcedureParameter.Builder builder = ProcedureParameter.in(declared.name(), type);
    return (declared.isRequired() ? builder : builder.defaultValue(declared.defaultValue())).comment(declared.text()).build();
  }

  @Override
  public boolean isDeterministic() {
    return false;
  }

  @Override
  public Iterator<Scan> call(InternalRow input) {
    return SparkErrors.run(() -> Uninterrupted.run(() -> {
      Arguments arguments = new Arguments(signature, input, types);
      Root root = arguments.root();
      Answer answer = new Answer(signature);
      if (!signature.isOfTopics()) {
        root.requireWritable();
        run(new Call(root, root.location(), null, arguments, answer));
        return List.<Scan>of(answer.scan()).iterator();
      }
      root.requireReadable(); // first: a root that does not exist is not told where it may be made
      root.requireWritable();
      requireTopics(root, arguments.keep().keySet());
      if (arguments.topic().isPresent()) {
        run(new Call(root, arguments.topic().get(), null, arguments, answer));
      } else {
        forEachTopic(root, arguments, answer);
      }
      return List.<Scan>of(answer.scan()).iterator();
    }));
  }

  /** Before anything is deleted: a name that is spelt wrong would keep nothing. */
  private static void requireTopics(Root root, Set<String> kept) {
    List<String> existing = kept.isEmpty() ? List.of() : root.topics();
    for (String topic : kept) {
      if (!existing.contains(topic)) {
        throw root.notFound(topic);
      }
    }
  }

  private void run(Call call) throws IOException {
    Uninterrupted.run(() -> {
      implementation.run(call);
      return null;
    });
  }

  /** A topic, and its state; null if the state cannot be had. */
  private record Seen(String topic, State state) {}

  /** The topics of a root, whose states are read at once. */
  private static List<Seen> seen(Root root) throws IOException {
    List<Seen> seen = new ArrayList<>();
    root.store().requests().each(root.candidates(), name -> {
      try {
        return root.newest(name).map(state -> new Seen(name, state));
      } catch (PartlogException failed) {
        return Optional.of(new Seen(name, null)); // Its own run tells why.
      }
    }, (name, found) -> {
      found.ifPresent(seen::add);
      return true;
    });
    return seen;
  }

  /** A topic where it fails does not keep it from the others. */
  private void forEachTopic(Root root, Arguments arguments, Answer answer) throws IOException {
    List<String> done = new ArrayList<>();
    List<String> failed = new ArrayList<>();
    PartlogException failure = null;
    for (Seen found : seen(root)) {
      String topic = found.topic;
      try {
        run(new Call(root, topic, found.state, arguments, answer));
        done.add(topic);
      } catch (PartlogException e) {
        // A topic that was deleted after the listing no longer counts.
        if (!e.id().equals("TOPIC_NOT_FOUND")) {
          failed.add(topic);
          failure = failure == null ? e : failure;
        }
      }
    }
    if (failure != null) {
      throw PartlogException.caused(failure, "CALL_INCOMPLETE", "procedure", name(), "root", root.store().root(), "failed", shown(failed),
          "error", failure.getMessage(), "done", shown(done));
    }
  }

  private static String shown(List<String> topics) {
    String first = topics.isEmpty() ? "none" : String.join(", ", topics.subList(0, Math.min(TOPICS_SHOWN, topics.size())));
    return topics.size() <= TOPICS_SHOWN ? first : first + " and " + (topics.size() - TOPICS_SHOWN) + " more";
  }
}
