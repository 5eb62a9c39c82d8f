"""The jars with which `sparklog serve` answers Kafka's clients. `pip install 'sparklog[serve]'` installs them."""

from pathlib import Path

JARS = Path(__file__).parent / "jars"
"""The folder of the jars: the server of sparklog, and all libraries that the server uses."""
STORES = Path(__file__).parent / "stores"
"""The folder of the jars that roots in HDFS and S3 need besides. The wheel `sparklog-serve-stores` adds it."""
