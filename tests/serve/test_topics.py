"""Clients create, change and delete topics."""

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError as KafkaErrorCode
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from handmade import Record, Topic
from kafka import KafkaProducer
from kafka.admin import ConfigResource as KafkaResource
from kafka.admin import ConfigResourceType, KafkaAdminClient
from kafka.admin import NewTopic as KafkaTopic
from kafka.errors import KafkaError
from logtool import LogTool
from serve.serving import RunningServer

import sparklog


@pytest.fixture
def admin(server: RunningServer) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.address})


@pytest.fixture
def producer(server: RunningServer) -> Generator[KafkaProducer]:
    producer = KafkaProducer(bootstrap_servers=server.address)
    yield producer
    producer.close()


def create(admin: AdminClient, name: str, partitions: int = 2, **config: str) -> None:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    [made] = admin.create_topics([NewTopic(name, partitions, 1, config=settings)]).values()
    made.result(60)


def config_of(server: RunningServer, name: str) -> dict[str, str]:
    return dict(sparklog.Log(server.root).topic(name).config)


def test_a_topic_that_a_client_creates_is_a_topic_of_the_root(server: RunningServer, admin: AdminClient, producer: KafkaProducer) -> None:
    create(admin, "made", 3, cleanup_policy="compact", retention_ms="86400000", compression_type="producer")
    config = config_of(server, "made")
    expected = {
        "partitions": "3",
        "partitioner": "murmur2",
        "kafka.view": "merged",
        "cleanup.policy": "compact",
        "retention.ms": "86400000",
    }
    assert {key: config[key] for key in expected} == expected
    sent = producer.send("made", b"x", key=b"some key").get(60)
    assert sparklog.Log(server.root).topic("made").read(key=b"some key").to_pylist()[0]["partition"] == sent.partition


def test_kafka_python_creates_a_topic(server: RunningServer) -> None:
    client = KafkaAdminClient(bootstrap_servers=server.address)
    client.create_topics([KafkaTopic("by-python", 3, 1, topic_configs={"retention.ms": "5000"})])
    client.close()
    assert config_of(server, "by-python")["retention.ms"] == "5000"


def test_a_topic_is_deleted_and_made_again(server: RunningServer, admin: AdminClient, producer: KafkaProducer) -> None:
    for _ in range(2):
        create(admin, "again")
        assert producer.send("again", b"x", partition=0).get(60).offset == 0
        admin.delete_topics(["again"])["again"].result(60)
        assert "again" not in sparklog.Log(server.root).topics()


def test_settings_are_changed_and_reset(server: RunningServer, admin: AdminClient) -> None:
    create(admin, "settings")

    def change(key: str, value: str | None) -> None:
        operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        entry = ConfigEntry(key, value or "", incremental_operation=operation)
        [done] = admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, "settings", incremental_configs=[entry])]).values()
        done.result(60)

    change("retention.ms", "5000")
    change("min.insync.replicas", "2")
    assert config_of(server, "settings")["retention.ms"] == "5000"
    assert config_of(server, "settings")["min.insync.replicas"] == "2"
    change("retention.ms", None)
    assert config_of(server, "settings")["retention.ms"] == "-1"


def sources(admin: AdminClient, name: str) -> dict[str, tuple[str, int, bool]]:
    """The settings of a topic as a client sees them: value, source, and whether they are read-only."""
    [told] = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name)]).values()
    return {key: (entry.value, entry.source, entry.is_read_only) for key, entry in told.result(60).items()}


@pytest.mark.filterwarnings("ignore:alter_configs has been deprecated")
def test_settings_that_nobody_set_are_defaults_and_stay(server: RunningServer, admin: AdminClient) -> None:
    default, own, of_server = (
        each.value for each in (ConfigSource.DEFAULT_CONFIG, ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.STATIC_BROKER_CONFIG)
    )

    def alter(name: str, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        [done] = admin.alter_configs([ConfigResource(ResourceType.TOPIC, name, set_config=settings)]).values()
        done.result(60)

    create(admin, "plain")
    before = sources(admin, "plain")
    assert {source for _, source, _ in before.values()} == {default}
    assert before["compression.type"] == ("uncompressed", default, False)
    assert (before["kafka.view"], before["partitioner"]) == (("merged", default, True), ("murmur2", default, True))
    alter("plain")
    assert sources(admin, "plain") == before
    alter("plain", retention_ms="5000", cleanup_policy="compact")
    after = sources(admin, "plain")
    assert {key for key in after if after[key] != before[key]} == {"retention.ms", "cleanup.policy"}
    assert after["cleanup.policy"] == ("compact", own, False)
    alter("plain", compression_type="uncompressed")
    assert sources(admin, "plain") == before
    # Settings that Kafka does not know are the topic's own, and a request that cannot name them leaves them.
    Topic(server.root, "other", config={"kafka.view": "all"}).append([Record(b"0")])
    alter("other", retention_ms="5000")
    found = sources(admin, "other")
    assert (found["kafka.view"], found["partitioner"]) == (("all", of_server, True), ("murmur3", of_server, True))


def test_synonyms_of_settings_are_told_to_clients_that_ask_for_them(server: RunningServer, admin: AdminClient) -> None:
    create(admin, "described", retention_ms="5000")
    client = KafkaAdminClient(bootstrap_servers=server.address)
    for asked, expected in ((True, [("retention.ms", "5000")]), (False, [])):
        found = client.describe_configs([KafkaResource(ConfigResourceType.TOPIC, "described")], include_synonyms=asked)
        setting = found["topic"]["described"]["retention.ms"]
        assert (setting["value"], [(each["name"], each["value"]) for each in setting["synonyms"]]) == ("5000", expected)
    client.close()


def test_a_topic_that_takes_keyed_records_gets_no_more_partitions(
    server: RunningServer, admin: AdminClient, producer: KafkaProducer
) -> None:
    """With more partitions the topic would have slots, and refuse the keyed records of each client for ever."""
    create(admin, "grown")
    for validate_only in (True, False):
        with pytest.raises(KafkaException, match=r"rebuild.*add_partitions.*keys\.in\.any\.partition") as refused:
            admin.create_partitions([NewPartitions("grown", 4)], validate_only=validate_only)["grown"].result(60)
        assert refused.value.args[0].code() == KafkaErrorCode.POLICY_VIOLATION
    assert config_of(server, "grown")["partitions"] == "2"
    producer.send("grown", b"x", key=b"k").get(60)

    tool = LogTool(server.classpath, server.root)
    tool.run("append", tag="A", topic="of-spark", commits=1, tasks=1, records=4)
    tool.run("change", topic="of-spark", what="partitions", to=5)
    admin.create_partitions([NewPartitions("of-spark", 6)])["of-spark"].result(60)  # Its clients send no keys, also before.
    assert config_of(server, "of-spark")["partitions"] == "6"
    later = KafkaProducer(bootstrap_servers=server.address)
    later.send("of-spark", b"x", partition=5).get(60)
    with pytest.raises(KafkaError, match=r"rebuild.*keys\.in\.any\.partition"):
        later.send("of-spark", b"x", key=b"k").get(60)
    later.close()


def test_more_partitions_where_keys_go_anywhere_and_a_root_that_is_deleted(serve_classpath: str, tmp_path: Path) -> None:
    with RunningServer(serve_classpath, tmp_path / "root", ("keys.in.any.partition=true",)) as server:
        admin = AdminClient({"bootstrap.servers": server.address})
        create(admin, "grown")
        admin.create_partitions([NewPartitions("grown", 4)])["grown"].result(60)
        producer = KafkaProducer(bootstrap_servers=server.address)
        for key in map(str, range(10)):
            producer.send("grown", b"x", key=key.encode()).get(60)
        assert sparklog.Log(server.root)["grown"].read().num_rows == 10
        shutil.rmtree(server.root)
        assert producer.send("again", b"x").get(60).offset == 0
        producer.close()
        assert f"the root {server.root} was deleted while it was served" in server.log()


def test_a_name_that_differs_by_dots_and_underscores_alone_is_refused(
    server: RunningServer, admin: AdminClient, producer: KafkaProducer
) -> None:
    create(admin, "like.this_one")
    for name in ("like_this_one", "like.this.one"):
        with pytest.raises(KafkaException, match="dots and underscores") as refused:
            create(admin, name)
        assert refused.value.args[0].code() == KafkaErrorCode.TOPIC_EXCEPTION
        with pytest.raises(KafkaError):
            producer.send(name, b"x").get(60)
        assert name not in sparklog.Log(server.root).topics()
    create(admin, "like.that_one")


def test_the_first_record_creates_its_topic(server: RunningServer, producer: KafkaProducer) -> None:
    assert producer.send("first-use", b"1").get(timeout=600).offset == 0
    config = config_of(server, "first-use")
    assert (config["partitions"], config["partitioner"], config["kafka.view"]) == ("8", "murmur2", "merged")
    assert sparklog.Log(server.root)["first-use"].read().num_rows == 1


def test_a_look_at_a_topic_does_not_create_it(server: RunningServer) -> None:
    admin = KafkaAdminClient(bootstrap_servers=server.address)
    [found] = admin.describe_topics(["never"])
    admin.close()
    assert found["error_code"] == 3
    assert "never" not in sparklog.Log(server.root)


def test_a_server_can_leave_the_creation_of_topics_to_others(serve_classpath: str, tmp_path: Path) -> None:
    # A root of its own: the client would ask any other server of the root too.
    with RunningServer(serve_classpath, tmp_path, ("auto.create.topics.enable=false",)) as alone:
        producer = KafkaProducer(bootstrap_servers=alone.address, max_block_ms=500)
        with pytest.raises(KafkaError):
            producer.send("never-here", b"1")
        producer.close()
    assert "never-here" not in sparklog.Log(tmp_path)
