"""One data file in S3, read front to back by the reads of a scan and by each input stream of S3A, behind a proxy that delays requests.

`PYTHONPATH=tests:. python -m stores.serve s3 -- python -m bench.store_alone` prints the table that decision 16 has.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path

import pyspark

from bench.distance import CONNECTION_BYTES_PER_S
from bench.far import Proxy, filesystem
from sparklog.spark.session import jar

S3A = Path(__file__).parents[1] / ".tools" / "s3a"
BYTES = 128 << 20
SIDES = {
    "the reads of a scan": "planned",
    "classic, sequential": "classic,sequential",
    "classic, vectored reads": "classic,vectored",
    "prefetch": "prefetch,sequential",
    "analytics, sequential": "analytics,sequential",
}
CIRCUMSTANCES = {
    "0 ms": (0, float("inf")),
    "30 ms": (30, float("inf")),
    f"30 ms, {CONNECTION_BYTES_PER_S // 10**6} MB/s a connection": (30, CONNECTION_BYTES_PER_S),
}
ROUNDS = 3


def main() -> None:
    from google_crc32c import value
    from stores.faults import most_at_once

    content, name = random.Random(16).randbytes(BYTES), "_partlog/t/data/a/0.log"
    bucket = f"alone-{random.SystemRandom().randrange(10**9)}"
    with Proxy(os.environ["STORES_S3"]) as proxy:
        files = filesystem(proxy.address, allow_bucket_creation=True)
        files.create_dir(bucket)
        with files.open_output_stream(f"{bucket}/root/{name}") as out:
            out.write(content)
        settings = json.loads(os.environ["STORES_S3_SETTINGS"]) | {"fs.s3a.endpoint": proxy.endpoint}
        path = ":".join([str(jar()), str(Path(pyspark.__file__).parent / "jars" / "*"), str(S3A / "*")])
        command = ["java", "-cp", path, str(Path(__file__).with_name("StoreAlone.java")), f"s3a://{bucket}/root", name, str(BYTES)]
        command += [f"{key}={setting}" for key, setting in settings.items()]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdin and process.stdout
            for told, (delay_ms, bytes_per_s) in CIRCUMSTANCES.items():
                seconds: dict[str, list[float]] = {side: [] for side in SIDES}
                asked: dict[str, str] = {}
                for turn in range(ROUNDS + 1):
                    for side in random.sample(list(SIDES), len(SIDES)):
                        proxy.begin(delay_ms, bytes_per_s)
                        print(SIDES[side], file=process.stdin, flush=True)
                        answer = process.stdout.readline().split()
                        assert answer and int(answer[0]) == value(content), (side, answer)
                        requests = proxy.requests()
                        kinds = sorted({each.kind for each in requests})
                        counts = ", ".join(f"{sum(each.kind == kind for each in requests)} {kind}" for kind in kinds)
                        sent = sum(each.sent for each in requests) >> 20
                        asked[side] = f"{counts} | {most_at_once(requests)} | {sent}"
                        if turn:  # the first is a warm-up
                            seconds[side].append(float(answer[1]))
                for side, each in seconds.items():
                    print(f"| {told} | {side} | {statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f}) | {asked[side]} |")
                print(f"load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
            process.stdin.close()


if __name__ == "__main__":
    main()
