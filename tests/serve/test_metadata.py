"""The topics, partitions, servers and settings that clients see."""

from collections.abc import Generator

import pytest
from door.serving import Door
from kafka.admin import KafkaAdminClient


@pytest.fixture(scope="module")
def admin(door: Door) -> Generator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=door.address)
    yield client
    client.close()


def test_an_admin_client_lists_the_topics_of_a_root(admin: KafkaAdminClient) -> None:
    assert "t" in admin.list_topics()
    [topic] = admin.describe_topics(["t"])
    assert len(topic["partitions"]) == 4
    assert {partition["error_code"] for partition in topic["partitions"]} == {0}


def test_an_admin_client_describes_the_cluster(admin: KafkaAdminClient, door: Door) -> None:
    cluster = admin.describe_cluster()
    [server] = cluster["brokers"]
    assert f"{server['host']}:{server['port']}" == door.address
    assert cluster["controller_id"] == server.get("node_id", server.get("broker_id"))


def test_an_admin_client_describes_settings(admin: KafkaAdminClient) -> None:
    from kafka.admin import ConfigResource, ConfigResourceType

    described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "t")], config_filter="all")
    assert "retention.bytes" in str(described) and "cleanup.policy" in str(described)
