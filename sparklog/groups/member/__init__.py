"""A member of a shared consumer group: it joins, takes and releases partitions, commits, beats, and leaves."""
