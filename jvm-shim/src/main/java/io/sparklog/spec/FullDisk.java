package io.sparklog.spec;

/** Tells how to make room on a disk, where a failure says that it is full, and only there. */
public final class FullDisk {
  private FullDisk() {}

  /**
   * {@code cause}, with what to do if the disk was full.
   *
   * @param failure may be null
   * @param place the root or the file that could not be written; only a place on a disk is a path
   */
  public static String told(String cause, Throwable failure, String place) {
    return place.startsWith("/") && isFull(failure)
        ? cause + " (make room first: the folders of the Kafka view, such as orders-0/, may be deleted, since CALL partlog.publish makes "
            + "them again)"
        : cause;
  }

  private static boolean isFull(Throwable failure) {
    for (Throwable at = failure; at != null; at = at.getCause()) {
      if (String.valueOf(at.getMessage()).contains("No space left on device")) {
        return true;
      }
    }
    return false;
  }
}
