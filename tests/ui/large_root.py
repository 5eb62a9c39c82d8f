"""A root of 1,000 topics, with 10,000 partitions and 100,000 segments, made by hand within seconds."""

from pathlib import Path

from handmade import Topic, batch, records

TOPICS, PARTITIONS, SEGMENTS = 1_000, 10, 10
"""Topics, partitions of each, segments of each partition."""
RECORDS = 3
"""Records of each segment."""


def large_root(root: Path) -> None:
    """Topics `topic-0000` to `topic-0999`. The segments of a topic are in one data file."""
    octets = batch(records(RECORDS))
    for number in range(TOPICS):
        topic = Topic(root, f"topic-{number:04}", PARTITIONS)
        segment = topic.data(octets)
        (topic.folder / segment["file"]).write_bytes(octets * PARTITIONS * SEGMENTS)
        topic.commit(
            *(
                segment
                | {
                    "partition": partition,
                    "position": (partition * SEGMENTS + place) * len(octets),
                    "base": place * RECORDS,
                    "end": (place + 1) * RECORDS,
                }
                for partition in range(PARTITIONS)
                for place in range(SEGMENTS)
            )
        )
