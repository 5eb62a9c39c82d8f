"""Kafka's record batches: headers, codecs, records, and records as columns."""
