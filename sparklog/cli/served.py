"""A topic that `sparklog produce` writes: through a server of the root that runs, or through a server of its own."""

from __future__ import annotations

import difflib
import platform
from typing import TYPE_CHECKING, Any

from sparklog import arguments
from sparklog.errors import CallError, SparklogError
from sparklog.log.keys import router_of
from sparklog.log.log import Log
from sparklog.ondisk.servers import addresses, cluster
from sparklog.options import declared, topic_option
from sparklog.serve.command import require
from sparklog.serve.own import OwnServer
from sparklog.serve.sender import RecordMetadata, Sender

if TYPE_CHECKING:
    from sparklog.cli.lines import Record
    from sparklog.ondisk.root import Root

_AS_SPARK = ("partitions", "partitioner")
"""The options that say where a key goes. `produce` puts a key where Spark does, and takes the server's defaults of other options."""
_PLACED_BY_SPARK = ("placement", "routing.")
"""The beginnings of the options of topics with slots that Spark alone gives to keys."""
_RECORD_BYTES = 100_000_000
_TIMEOUT_MS = 30_000
"""A server that cannot write, such as to a full disk, is given up after this time."""
_CONNECT_S = 2
_ANSWER_S = 30


class ServedTopic:
    """A topic that gets records through a server."""

    def __init__(self, root: Root, name: str, config: dict[str, str]) -> None:
        """Finds or starts the server, and creates the topic if it does not exist.

        Args:
            root: The root.
            name: The name of the topic.
            config: The options of the topic.

        Raises:
            CallError: OPTION_UNKNOWN, OPTION_VALUE and OPTION_CONTRADICTS_TOPIC for options; as of `sparklog.Producer`.
        """
        require("confluent_kafka")
        self._root, self._name = root, name
        _check_options(config)
        found = None
        try:
            found = Log(root).topic(name).describe()["config"]
        except SparklogError as error:
            if error.id not in ("ROOT_NOT_FOUND", "ROOT_WITHOUT_LOG", "TOPIC_NOT_FOUND"):
                raise
        if found is not None:
            self._require_same(config, found)
        codec = (config if found is None else found).get("compression.type", "none").lower()
        settings = {
            "client.id": "sparklog produce",
            "compression.type": codec,
            "linger.ms": 0,
            "message.max.bytes": _RECORD_BYTES,
            "message.timeout.ms": _TIMEOUT_MS,
        }
        self._sender = _sender(root, settings)
        try:
            if found is None:
                self._create(config)
            self._log = arguments.topic_logs(root).log(name)
            self._known = self._log.newest().partitions
            """The number of partitions that the client knows."""
        except BaseException:
            self._sender.abandon()
            raise

    def _require_same(self, config: dict[str, str], found: dict[str, str]) -> None:
        for key, value in config.items():
            if _plain(key, value) != _plain(key, found.get(key, str(topic_option(key).default))):
                raise SparklogError(
                    "OPTION_CONTRADICTS_TOPIC",
                    option=key,
                    value=value,
                    topic=self._name,
                    root=self._root,
                    found=found.get(key, "its default"),
                    way="Leave the option out",
                )

    def _create(self, config: dict[str, str]) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined] # it is documented there

        given = {key: str(topic_option(key).default) for key in _AS_SPARK} | config
        new = NewTopic(self._name, num_partitions=int(given.pop("partitions")), replication_factor=1, config=given)
        admin = AdminClient(self._sender.settings)  # its requests end with it
        try:
            admin.create_topics([new], request_timeout=_ANSWER_S)[self._name].result()
        except KafkaException as error:
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise SparklogError("SEND_REFUSED", topic=self._name, root=self._root, cause=error.args[0].str().rstrip(".")) from None

    def write(self, records: list[Record]) -> list[RecordMetadata]:
        """Adds records in their order. Returns the place of each, when all are committed.

        CallError PARTITION_OUT_OF_RANGE, before a record is sent; or the error of the first record that failed.
        """
        last = self._log.newest().partitions - 1
        for record in records:
            if record.partition is not None and record.partition > last:
                raise SparklogError("PARTITION_OUT_OF_RANGE", partition=record.partition, topic=self._name, root=self._root, last=last)
        if self._log.newest().config.get("placement") == "on_first_write" and any(each.key is not None for each in records):
            cause = "its slots get partitions when Spark writes (placement=on_first_write): write keys with Spark"
            raise SparklogError("SEND_REFUSED", topic=self._name, root=self._root, cause=cause)
        if self._log.newest().pending_weights is None:
            return self._written(records)
        try:  # The write of the first record makes the re-route that waits. Then its key may belong into another partition.
            first = self._written(records[:1])
        except CallError:
            first = self._written(records[:1])
        return first + self._written(records[1:])

    def _written(self, records: list[Record]) -> list[RecordMetadata]:
        state = self._log.newest()
        if state.partitions != self._known:
            self._sender.cluster(_ANSWER_S)
            self._known = state.partitions
        router = router_of(state)
        sent = []
        for record in records:  # all of them, so that they share commits
            partition = record.partition
            if partition is None and record.key is not None:
                partition = router.of_key(record.key)
            headers = [(each["key"], each["value"]) for each in record.headers]
            sent.append(self._sender.send(self._name, record.value, record.key, headers, partition, record.timestamp, _ANSWER_S))
        return [each.get() for each in sent]

    def close(self, wait_s: float | None = None) -> None:
        """Ends the use of the server. Records without an answer fail after `wait_s` seconds."""
        self._sender.close(wait_s)


def _sender(root: Root, settings: dict[str, Any]) -> Sender:
    for address in addresses(root, kinds=("PLAINTEXT", f"PLAINTEXT on {platform.node()}")):  # without a password, and to write
        sender = Sender({**settings, "bootstrap.servers": address}, str(root))
        if sender.cluster(_CONNECT_S) == cluster(root):  # another server may have the address meanwhile
            return sender
        sender.abandon()
    return Sender(settings, str(root), OwnServer(str(root)))


def _check_options(config: dict[str, str]) -> None:
    """Refuses options that no topic has, and options of topics that the server does not create."""
    known = {each.key: each for each in declared().options if "topic" in each.scopes}
    for key, value in config.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            raise SparklogError("OPTION_UNKNOWN", option=key, nearest=f" Did you mean `{near[0]}`?" if near else "")
        problem = known[key].problem(value)
        if problem is None and key.startswith(_PLACED_BY_SPARK):
            problem = "create the topic with `sparklog create`, and then write to it"
        if problem:
            raise SparklogError("OPTION_VALUE", option=key, value=value, reason=problem)


def _plain(key: str, value: str) -> str:
    """A value of an option in the form that a topic has."""
    option = topic_option(key)
    if option.type in ("int", "long"):
        return str(int(value))
    return option.synonyms.get(value.lower(), value.lower())
