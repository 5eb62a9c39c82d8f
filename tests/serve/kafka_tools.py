"""Kafka's own tools, by the names of their scripts. They are programs of Kafka's Java clients."""

import subprocess

from logtool import SHORT_LIVED

from bench.broker import JARS

WAIT_S = 600
SCRIPTS = {
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}


def run_tool(address: str, script: str, *words: object, given: str = "") -> str:
    """Runs a tool with words and standard input. Gives its standard output, and demands that the tool ends well."""
    said = run_tool_to_its_end(address, script, *words, given=given)
    assert said.returncode == 0, said.stdout + said.stderr
    return said.stdout


def run_tool_to_its_end(address: str, script: str, *words: object, given: str = "") -> "subprocess.CompletedProcess[str]":
    """As `run_tool`, for a tool that may fail."""
    java = ["java", *SHORT_LIVED, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{JARS}/*", SCRIPTS[script]]
    command = [*java, "--bootstrap-server", address, *map(str, words)]
    return subprocess.run(command, input=given, capture_output=True, encoding="utf-8", timeout=WAIT_S, check=False)
