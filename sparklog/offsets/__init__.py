"""Positions of named groups of readers, kept as rows of a Delta table: offset commit tables."""

from sparklog.offsets.rows import Position
from sparklog.offsets.table import OffsetTable

__all__ = ["OffsetTable", "Position"]
