"""Spark as sparklog uses it: sessions with the connector, and the progress of queries."""
