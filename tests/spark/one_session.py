"""Runs programs one after another in one process, so that they share a Spark session as the cells of a notebook do.

Each line of standard input is a program. The answer on standard output is a line of JSON: the traceback, or "". All run in the folder of
the process and of its JVM, so the files of one program are removed before the next.
"""

import json
import os
import shutil
import sys
import traceback
from pathlib import Path

from pyspark.sql import SparkSession


def ran(program: str) -> str:
    try:
        exec(compile(Path(program).read_bytes(), program, "exec"), {"__name__": "__main__"})
    except BaseException:
        return traceback.format_exc()
    finally:
        session = SparkSession.getActiveSession()
        for query in session.streams.active if session else ():
            query.stop()
        for left in Path().iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    return ""


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the output of a program does not mix with the answers
    for line in sys.stdin:
        print(json.dumps(ran(line.strip())), file=answers, flush=True)


if __name__ == "__main__":
    main()
