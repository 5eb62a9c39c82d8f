package io.sparklog.storage;

/** Is told how far a put has come, by the store that does it, so that a test can stop it there. */
public interface PutObserver {
  /** The stages of a put, in their order. A store that does several stages at once reports only the stages that it has. */
  enum Stage {
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
  PutObserver NONE = stage -> {};

  void reached(Stage stage);
}
