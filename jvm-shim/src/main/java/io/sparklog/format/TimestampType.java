package io.sparklog.format;

/** The meaning of the times of a topic's records. The names are the names of Kafka's {@code message.timestamp.type}. */
public enum TimestampType {
  CREATE_TIME("CreateTime"), LOG_APPEND_TIME("LogAppendTime");

  private final String optionName;

  TimestampType(String optionName) {
    this.optionName = optionName;
  }

  public String optionName() {
    return optionName;
  }

  /** The type called {@code optionName}, or null if it does not exist. */
  public static TimestampType named(String optionName) {
    for (TimestampType type : values()) {
      if (type.optionName.equals(optionName)) {
        return type;
      }
    }
    return null;
  }
}
