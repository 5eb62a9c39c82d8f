"""Kafka's record batches: headers, codecs, records, and records as columns. `records` checks the CRC of a batch."""
