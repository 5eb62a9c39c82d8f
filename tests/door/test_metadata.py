"""The topics, partitions and servers that clients see."""

from door.serving import Door
from kafka.admin import KafkaAdminClient


def test_an_admin_client_lists_the_topics_of_a_root(door: Door) -> None:
    admin = KafkaAdminClient(bootstrap_servers=door.address)
    try:
        assert "t" in admin.list_topics()
        [topic] = admin.describe_topics(["t"])
        assert len(topic["partitions"]) == 4
        assert {partition["error_code"] for partition in topic["partitions"]} == {0}
    finally:
        admin.close()
