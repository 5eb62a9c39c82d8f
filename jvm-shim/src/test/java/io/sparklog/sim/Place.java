package io.sparklog.sim;

import io.sparklog.storage.ReadStore;

/** Where the files of a simulation are. */
enum Place {
  DISK,
  /** Behind a network: {@link ReadStore#isRemote}. */
  FAR,
  /** Behind a network, with names in order: {@link ReadStore.Listing#isInOrder}. */
  FAR_IN_ORDER;

  boolean isFar() {
    return this != DISK;
  }
}
