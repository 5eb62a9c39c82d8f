"""The jars with which `sparklog serve` answers Kafka's clients. `pip install 'sparklog[serve]'` installs them."""

from pathlib import Path

JARS = Path(__file__).parent / "jars"
"""The folder of the jars: the server of sparklog, and the libraries of Kafka that the server uses."""
