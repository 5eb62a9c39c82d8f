package io.sparklog.storage;

/** The checks of the contract for a store that a test has, and not for one of a new root. */
final class ContractOf extends LogStoreContract {
  ContractOf(LogStore store) {
    this.store = store;
  }

  @Override
  LogStore newStore() {
    return store;
  }
}
