package io.sparklog.storage;

import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/** The same server behind a proxy, where requests go wrong at random, in ways that a client may repeat. */
@EnabledIfSystemProperty(named = "stores.s3faults", matches = ".+")
final class S3OverFaultsTest extends S3StoreTest {
  @Override
  StoreRef newRoot() {
    return StoreSettings.newRoot("stores.s3faults", QUICK);
  }
}
