package io.sparklog.sink;

/** Whether the topics of a write must exist. Users of Kafka expect that the first write creates a topic; SQL says it in a statement. */
public enum Existence {
  /** A topic that does not exist is created. */
  ANY,
  /** The topic must not exist: the write creates it, or does nothing. */
  NEW,
  /** The topic must exist. */
  THERE
}
