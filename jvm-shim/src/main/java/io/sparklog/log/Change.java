package io.sparklog.log;

import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.Optional;

/**
 * The change that a commit makes to a topic. A {@link Committer} asks it against the newest state, and asks again whenever another writer's
 * version was first.
 *
 * <p>One object is one attempt to change one topic.
 */
public interface Change {
  /** Makes durable all files that the version will name. Called once, before the state is read. */
  default void prepare() throws IOException {}

  /**
   * Making this change twice has the effect of making it once. If version files were deleted while its version was put, this change is
   * asked again from the newest state, as a change with a query is. Any other change ends as unknown. FORMAT.md section 7.5.
   */
  interface Administrative extends Change {
    @Override
    default Step.Put steps() {
      return Step.Put.ADMIN;
    }
  }

  /** Whether {@link #next} needs a state that knows the producers of the topic. */
  default boolean needsProducers() {
    return false;
  }

  /** The steps that a put of its version has. */
  default Step.Put steps() {
    return Step.Put.COMMIT;
  }

  /**
   * The part of {@code newest} that makes this change done already, in words such as {@code epoch 3 of q}; empty if it is not done. The
   * committer then makes that state durable: the process that put its version may have died before it did so.
   *
   * @throws PartlogException if the state holds something that is like this change, but differs from it
   */
  default Optional<String> appliedIn(State newest) throws IOException {
    return Optional.empty();
  }

  /** The epoch that its version applies, as {@link #next} gives it; null if none. */
  default Query query() {
    return null;
  }

  /** Deletes what {@link #prepare} or those before it have made. Called once, if the commit failed, and no version can name any of it. */
  default void refused() {}

  /** Called once, if the change is committed or need not be, before the upkeep. */
  default void settled() {}

  /**
   * The version to put. Must not change anything by itself: it may be asked often, and the version may be lost to another writer.
   *
   * @param newest empty if nothing was ever committed to a topic of this name; it may be the state of a deleted topic
   * @return empty if there is nothing to commit
   * @throws PartlogException if the change must not be made to this state; it is then not done
   */
  Optional<NextVersion> next(Optional<State> newest) throws IOException;
}
