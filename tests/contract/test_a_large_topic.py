"""10 GB that Java wrote in 10,000 commits, read without a JVM.

Takes 20 GB of disk: pieces in shared files are copied for the Kafka view.
"""

import subprocess
import sys

import pytest
from logtool import LogTool

COMMITS = 10_000
TASKS = 2
RECORDS = 10
VALUE_BYTES = 100_000

SCRIPT = """
import sys, time
begun = time.perf_counter()
import sparklog
topic = sparklog.Log(sys.argv[1]).topic("t")
table = topic.head(10)
print(time.perf_counter() - begun, table.num_rows, sum(topic.end_offsets().values()), topic.tail(3).num_rows)
"""


@pytest.mark.soak
def test_ten_gigabytes_in_ten_thousand_commits(tool: LogTool) -> None:
    writer = tool.start("append", commits=COMMITS, tasks=TASKS, records=RECORDS, big=VALUE_BYTES, partitions=2)
    out, err = writer.communicate()
    assert writer.returncode == 0, err
    assert len(out.splitlines()) == COMMITS
    data = sum(file.stat().st_size for file in tool.root.glob("_partlog/t/data/*/*.log"))
    assert data > COMMITS * RECORDS * VALUE_BYTES
    seconds = []
    for _ in range(5):
        command = [sys.executable, "-c", SCRIPT, str(tool.root)]
        took, *rest = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert rest == ["10", str(COMMITS * TASKS * RECORDS), "3"]
        seconds.append(float(took))
    print(f"{data:,} bytes in {COMMITS:,} commits; import and head(10): {min(seconds):.3f} s at best, {max(seconds):.3f} s at worst")
    assert min(seconds) < 0.5, seconds
