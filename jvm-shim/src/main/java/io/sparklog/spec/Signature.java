package io.sparklog.spec;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * A procedure as {@code spec/procedures.json} declares it.
 *
 * @param parameters in the order of a call by position
 * @param columns of the rows that it returns
 */
public record Signature(String name, String text, List<Parameter> parameters, List<Column> columns) {
  private static final Pattern LINK = Pattern.compile("\\[([^\\]]*)]\\([^)]*\\)");

  /**
   * An argument of a call.
   *
   * @param defaultValue in SQL; null if the argument is required
   * @param min the least number, or the least milliseconds of an interval; meaningless for other types
   * @param max the greatest number
   */
  public record Parameter(String name, String type, String defaultValue, String text, long min, long max) {
    private static Parameter of(JsonNode declared) {
      return new Parameter(field(declared, "name"), field(declared, "type"), declared.path("default").textValue(), plainText(declared),
          declared.path("min").asLong(0), declared.path("max").asLong(Long.MAX_VALUE));
    }

    public boolean isRequired() {
      return defaultValue == null;
    }
  }

  /** A column of each row. */
  public record Column(String name, String type, boolean isNullable, String text) {
    private static Column of(JsonNode declared) {
      return new Column(field(declared, "name"), field(declared, "type"), declared.path("nullable").asBoolean(false), plainText(declared));
    }
  }

  /** All procedures, as declared. */
  public static List<Signature> all() {
    List<Signature> all = new ArrayList<>();
    for (JsonNode declared : Errors.load("procedures.json").get("procedures")) {
      List<Parameter> parameters = new ArrayList<>();
      declared.get("parameters").forEach(parameter -> parameters.add(Parameter.of(parameter)));
      List<Column> columns = new ArrayList<>();
      declared.get("columns").forEach(column -> columns.add(Column.of(column)));
      String text = field(declared, "summary") + " " + plainText(declared);
      all.add(new Signature(field(declared, "name"), text, List.copyOf(parameters), List.copyOf(columns)));
    }
    return List.copyOf(all);
  }

  /** The text of a declaration, with the words of its links alone: these lead from the page of the reference, and from nowhere else. */
  private static String plainText(JsonNode declared) {
    return LINK.matcher(field(declared, "text")).replaceAll("$1");
  }

  private static String field(JsonNode declared, String name) {
    return declared.get(name).textValue();
  }

  /** Whether a call is about topics: the first column of its rows names the topic. */
  public boolean isOfTopics() {
    return columns.get(0).name().equals("topic");
  }

  /** {@code publish(root, topic => NULL)} */
  public String usage() {
    return parameters.stream()
        .map(parameter -> parameter.name() + (parameter.isRequired() ? "" : " => " + parameter.defaultValue()))
        .collect(Collectors.joining(", ", name + "(", ")"));
  }

  /** ARGUMENT_VALUE: The parameter cannot have {@code value}, as a user would write it. */
  public PartlogException invalid(String parameter, Object value, String reason) {
    return PartlogException.of("ARGUMENT_VALUE", "procedure", name, "argument", parameter, "value", value, "reason", reason, "usage",
        usage());
  }
}
