"""Programs beside streaming queries: they commit offsets for a query, and place new keys by the load that the query has."""

from sparklog.queries.tracker import Tracker, track
from sparklog.queries.write_delta import write_delta

__all__ = ["Tracker", "track", "write_delta"]
