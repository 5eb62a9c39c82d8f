"""`sparklog.Producer` sends to a broker of Kafka, too."""

from pathlib import Path

import pytest
from kafka import KafkaConsumer, TopicPartition

import sparklog
from bench.broker import broker


@pytest.mark.slow
def test_a_broker_gets_each_key_in_the_partition_of_its_own_clients(tmp_path: Path) -> None:
    keys = ["", *(f"key-{number}" for number in range(50))]
    with broker(tmp_path / "kafka", "t", 6) as (address, _):
        with sparklog.Producer(bootstrap_servers=address) as producer:
            sent = [producer.send("t", str(number), key=key) for number, key in enumerate(keys)]
            placed = [each.get(timeout=600) for each in sent]
        assert [each.partition for each in placed] == [sparklog.partition_for(key, 6, "murmur2") for key in keys]
        consumer = KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest", enable_auto_commit=False)
        consumer.assign([TopicPartition("t", number) for number in range(6)])
        found = dict[int, str]()
        while len(found) < len(keys):
            for each in (each for batch in consumer.poll(1000).values() for each in batch):
                found[int(each.value)] = each.key.decode()
        consumer.close()
    assert [found[number] for number in range(len(keys))] == keys
