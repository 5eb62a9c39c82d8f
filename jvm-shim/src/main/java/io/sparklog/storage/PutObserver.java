package io.sparklog.storage;

/** Is told how far a put has come, by the store that does it, so that a test can stop it there. */
public interface PutObserver {
  /** The parts of a put, in their order; a store that does several at once reports those that it has. */
  enum Part {
    /** It begins. */
    BEGUN,
    /** The content is durable under another name; a reader sees nothing yet. */
    WRITTEN,
    /** The name is there; a power loss may still take it. */
    NAMED,
    /** The name is durable. */
    DURABLE
  }

  /** Does nothing. */
  PutObserver NONE = part -> {};

  void reached(Part part);
}
