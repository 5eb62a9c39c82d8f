"""Spark as sparklog uses it: sessions with the connector, and what a query does."""
