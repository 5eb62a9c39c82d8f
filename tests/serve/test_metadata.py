"""The topics, partitions, servers and settings that clients see."""

from collections.abc import Generator

import pytest
from kafka.admin import KafkaAdminClient
from serve.serving import RunningServer


@pytest.fixture(scope="module")
def admin(server: RunningServer) -> Generator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=server.address)
    yield client
    client.close()


def test_an_admin_client_lists_the_topics_of_a_root(admin: KafkaAdminClient) -> None:
    assert "t" in admin.list_topics()
    [topic] = admin.describe_topics(["t"])
    assert len(topic["partitions"]) == 4
    assert {partition["error_code"] for partition in topic["partitions"]} == {0}


def test_an_admin_client_describes_the_cluster(admin: KafkaAdminClient, server: RunningServer) -> None:
    cluster = admin.describe_cluster()
    [described] = cluster["brokers"]
    assert f"{described['host']}:{described['port']}" == server.address
    assert cluster["controller_id"] == described.get("node_id", described.get("broker_id"))


def test_an_admin_client_describes_settings(admin: KafkaAdminClient) -> None:
    from kafka.admin import ConfigResource, ConfigResourceType

    described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "t")], config_filter="all")
    assert "retention.bytes" in str(described) and "cleanup.policy" in str(described)
