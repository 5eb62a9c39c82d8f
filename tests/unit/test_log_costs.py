"""The costs of a read: memory, files and octets. It needs no Java."""

import os
import subprocess
import sys
import tracemalloc

import pyarrow as pa
import pytest
from handmade import TIME, Record, Topic, batch, identity, records

from sparklog import Log


def test_memory_does_not_grow_with_the_topic(tmp_path):
    topic = Topic(tmp_path)
    octets = b"".join(batch([Record(bytes(1000)) for _ in range(100)], 100 * number) for number in range(10))
    for _ in range(60):
        topic.commit(topic.data(octets))
    log = Log(tmp_path).topic("t")
    peaks = []
    for limit in (2_000, 60_000):
        tracemalloc.start()
        before = pa.total_allocated_bytes()
        arrow = rows = 0
        for part in log.scan(limit=limit):
            rows += part.num_rows
            arrow = max(arrow, pa.total_allocated_bytes() - before)
        peaks.append(tracemalloc.get_traced_memory()[1] + arrow)
        tracemalloc.stop()
        assert rows == limit
    assert peaks[1] < peaks[0] * 1.5 + 8_000_000, peaks


@pytest.mark.parametrize("ask", [lambda topic: topic.tail(10).num_rows, lambda topic: topic.show(10, last=True) or 10])
def test_memory_of_the_last_records_does_not_grow_with_the_partitions(tmp_path, ask):
    peaks = []
    for partitions in (2, 32):
        topic = Topic(tmp_path / str(partitions), "t", partitions)
        each = [[Record(bytes(100_000), b"k", TIME + 1000 * number + of) for number in range(10)] for of in range(partitions)]
        topic.commit(*(topic.data(b"".join(batch([it], at) for at, it in enumerate(its)), of) for of, its in enumerate(each)))
        log = Log(tmp_path / str(partitions)).topic("t")
        log.tail(10, columns=["offset"])  # what is imported, and what is known of the topic, does not count
        tracemalloc.start()
        assert ask(log) == 10
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 1_000_000, peaks


def test_looking_at_records_does_not_wait_for_pandas(topic):
    pytest.importorskip("pandas")  # it is not imported then, although it is there
    script = """
import sys
import sparklog
topic = sparklog.Log(sys.argv[1])["t"]
topic.head(), topic.tail(), topic.tail(5, 0, key="k1"), topic.read(), topic.show(), topic.show(last=True), topic.describe()
assert sparklog.Consumer(sys.argv[1], "t", auto_offset_reset="earliest").poll()
sys.exit("pandas" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", script, str(topic.root)], check=True, stdout=subprocess.DEVNULL)


def test_a_process_without_java_and_without_spark_can_do_all_of_it(topic):
    script = """
import sys
class Never:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "py4j", "pandas", "delta"):
            raise ImportError(name)
sys.meta_path.insert(0, Never())
import sparklog
log = sparklog.Log(sys.argv[1])
topic = log.topic(log.topics()[0])
print(topic.head(1).num_rows, topic.tail(1).num_rows, topic.read().num_rows, len(list(topic.batches(0))), len(topic.commits()))
topic.show(1), topic.show(1, key="k1", last=True), repr(topic.commits())
topic.describe(), topic.offsets_for_time(0), repr(log), repr(topic), log._repr_html_(), topic._repr_html_()
"""
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"} | {"PATH": "/nowhere"}
    ended = subprocess.run([sys.executable, "-c", script, str(topic.root)], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[0] == "1 1 35 5 2"


@pytest.mark.slow
def test_head_of_a_large_topic_reads_one_checkpoint_and_one_batch(tmp_path):
    """10 GB in 10,000 commits to 8 partitions. Most data files are holes, which head() must not read.

    Files and octets count, not seconds: those depend on the machine. bench/ measures them.
    """
    topic = Topic(tmp_path, partitions=8)
    octets = batch(records(100))
    for version in range(10_000):
        if version < 20:
            segments = [topic.data(octets, partition) for partition in range(8)]
        else:
            file = f"data/{version:020d}-{identity(version)}/pool.log"
            ends = topic.versions[-1]["ends"]
            segments = [old | {"base": end, "end": end + 100, "file": file} for old, end in zip(segments, ends, strict=True)]
            if version % 100 == 99:
                (topic.folder / file).parent.mkdir()
                (topic.folder / file).touch()
                os.truncate(topic.folder / file, 100_000_000)
        topic.commit(*segments)
        if version == 9_949:
            topic.checkpoint()
    script = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import sparklog
table = sparklog.Log(sys.argv[1]).topic("t").head(10)
inside = [name for name in opened if name.startswith(sys.argv[1])]
with open("/proc/self/io") as counts:
    read = int(counts.readline().split()[1])
print(table.num_rows, "pandas" in sys.modules, len(inside), sum("/data/" in name for name in inside), read)
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    rows, pandas, files, data, read = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout.split()
    print(f"head(10) opens {files} files, {data} of them with data; with Python and its imports it reads {int(read):,} octets")
    assert (rows, pandas, data) == ("10", "False", "1")
    assert int(files) <= 60, "a checkpoint and the 50 versions after it"
    assert int(read) < 20_000_000, f"of a checkpoint of {max(map(os.path.getsize, topic.folder.rglob('*checkpoint*'))):,} octets"
