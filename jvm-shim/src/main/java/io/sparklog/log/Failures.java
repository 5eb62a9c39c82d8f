package io.sparklog.log;

import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** The failures of parts of some work. Each part is tried although others failed. */
public final class Failures {
  private final String location;
  private final List<PartlogException> failures = new ArrayList<>();

  /** A part of the work. */
  @FunctionalInterface
  public interface Task {
    void run() throws IOException;
  }

  /** @param location of the files that the work is about, for messages */
  public Failures(String location) {
    this.location = location;
  }

  /** Runs a part, and notes its failure. */
  public void attempt(Task part) {
    try {
      part.run();
    } catch (IOException e) {
      note(PartlogException.io(e, location));
    } catch (PartlogException e) {
      note(e);
    }
  }

  public void note(PartlogException failure) {
    failures.add(failure);
  }

  /** The failures so far, in order. */
  public List<PartlogException> all() {
    return failures;
  }

  /** To be called in the end. @throws PartlogException the first failure, which holds the others */
  public void throwFirst() {
    if (!failures.isEmpty()) {
      PartlogException first = failures.get(0);
      failures.subList(1, failures.size()).forEach(first::addSuppressed);
      throw first;
    }
  }
}
