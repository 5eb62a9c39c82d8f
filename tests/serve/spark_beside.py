"""A program that appends to a topic with Spark until it is ended. It prints each commit before the write, and again after the write.

Its arguments are the root, the topic and the name of its records.
"""

import signal
import sys
import time

import sparklog

RECORDS = 20


def main() -> None:
    root, topic, name = sys.argv[1:]
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    settings = {"spark.master": "local[1]", "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    spark = sparklog.session(conf={**settings, "spark.ui.showConsoleProgress": "false"})
    commit = 0
    while not ended:
        rows = spark.range(RECORDS).selectExpr(f"CONCAT('{name}.{commit}:', id) AS value")
        print("begin", commit, flush=True)
        try:
            rows.write.format("partlog").option("topic", topic).mode("append").save(root)
            print("done", commit, flush=True)
        except Exception as e:
            print("error", commit, str(e).splitlines()[0], flush=True)
        commit += 1
        time.sleep(0.5)
    spark.stop()


if __name__ == "__main__":
    main()
