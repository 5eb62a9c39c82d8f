"""The output of commands into terminals and pipes, and for how long: escapes, encodings, pipes that break, records that are followed."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from broken_reroutes import Routed
from handmade import Record, Topic, batch, records

pytestmark = pytest.mark.slow


def test_a_terminal_gets_no_byte_of_a_record_that_could_steer_it(hostile):
    """Each command, in a terminal of its own: only what rich and we print may be an escape code."""
    import pty

    for words in (
        ["head"],
        ["tail"],
        ["describe"],
        ["commits"],
        ["cat"],
        ["cat", "-f", "%k %s %h\\n"],
        ["cat", "-f", "csv"],
        ["cat", "--json"],
        ["dump", "--print-data-log"],
        ["keys", "\x1b]0;x\x07"],
        ["stats"],
    ):
        main, side = pty.openpty()
        command = [sys.executable, "-m", "sparklog", words[0], str(hostile.root), "h", *words[1:]]
        environment = {**os.environ, "NO_COLOR": "1", "TERM": "xterm", "PYTHONPATH": str(Path(__file__).parents[2])}
        process = subprocess.Popen(command, stdout=side, stderr=side, env=environment)
        os.close(side)
        said = b""
        try:
            while piece := os.read(main, 65536):
                said += piece
        except OSError:
            pass
        os.close(main)
        assert process.wait() == 0, said
        assert not set(said.decode()) & set("\x00\x07\x9b\u202e"), (words, said)
        assert b"\x1b]" not in said, (words, said)
        # Without colours: a terminal gets bold (1), dim (2) and their end (0), as the page says.
        assert set(re.findall(rb"\x1b\[([\d;]*)m", said)) <= {b"0", b"1", b"2"}, (words, said)


def test_a_broken_pipe_is_silent(start, tmp_path):
    topic = Topic(tmp_path / "root")
    topic.append([Record(b"x" * 1000)] * 2000)
    for words in (["cat"], ["cat", "--json"], ["dump"], ["segments"]):
        with start(words[0], topic.root, "t", *words[1:]) as process:
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait() == 141


def test_tail_follows(start, topic):
    with start("tail", topic.root, "t", "-n", 2, "-f", "--json") as process:
        found = [json.loads(process.stdout.readline()) for _ in range(2)]
        for number in range(20):
            topic.append(records(3, f"n{number}"), number % 2)
            found += [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert process.stderr.read() == b""
    places = [(each["partition"], each["offset"]) for each in found]
    assert len(places) == len(set(places))
    assert places[2:] == [(number % 2, (25, 10)[number % 2] + 3 * (number // 2) + each) for number in range(20) for each in range(3)]


@pytest.mark.parametrize(("ends", "unbuffered"), [(signal.SIGINT, ""), (signal.SIGTERM, ""), (signal.SIGTERM, "1")])
def test_tail_ends_in_order_when_a_service_manager_ends_it(start, tmp_path, monkeypatch, ends, unbuffered):
    """The records that it has read are printed whole, also where the signal comes while it prints, and none comes after them."""
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    topic = Topic(tmp_path / "root")
    topic.append([Record(b"first")])
    with start("tail", topic.root, "t", "-f", "--json") as process:
        process.stdout.readline()
        topic.append([Record(b"x" * 1000)] * 400)  # more than a pipe takes
        found = [process.stdout.readline()]
        process.send_signal(ends)
        topic.append([Record(b"late")])
        found += process.stdout.readlines()
        assert (process.wait(), process.stderr.read()) == (128 + ends, b"")
    assert [json.loads(line)["offset"] for line in found] == list(range(1, 401))


def test_tail_follows_partitions_that_are_added(start, topic):
    routed = Routed(topic)
    with start("tail", topic.root, "t", "-n", 1, "-f", "--json") as process:
        json.loads(process.stdout.readline())
        routed.put(routed.reroute([1, 1, 1], {2: [*range(2731, 4096)]}))
        topic.commit(topic.data(batch(records(2, "new")), 2), features=routed.features)
        found = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert [(each["partition"], each["offset"], each["value"]) for each in found] == [(2, 0, "new-0"), (2, 1, "new-1")]


def test_tail_follows_into_an_encoding_that_lacks_a_character(start, tmp_path, monkeypatch):
    topic = Topic(tmp_path / "root")
    topic.append([Record("größe €".encode())])
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    with start("tail", topic.root, "t", "-f") as process:
        assert process.stdout.readline().endswith(b" gr\xf6\xdfe \\u20ac\n")
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130


def test_a_pipe_in_the_place_of_the_output_stays_one(run, topic, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", str(fifo)], stdout=subprocess.PIPE) as reader:
        run("cat", topic.root, "t", "-c", 2, "-O", fifo)
        assert reader.stdout.read() == b"a-0\na-1\n"
    assert fifo.is_fifo()
    assert run("cat", topic.root, "t", "-c", 1, "-O", "-") == "a-0\n"


def test_what_is_in_the_place_of_the_output_keeps_it(topic, tmp_path):
    """A link to a file, standard output by its name, and a terminal by its name, which gets no escape of a record."""
    import pty

    def ran(*words: object, **to: object) -> int:
        command = [sys.executable, "-m", "sparklog", "cat", str(topic.root), *map(str, words)]
        return subprocess.run(command, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}, check=False, **to).returncode

    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to(file)
    assert ran("t", "-c", 1, "-O", link) == 0
    assert (link.is_symlink(), file.read_bytes()) == (True, b"a-0\n")
    stdout = tmp_path / "stdout"
    stdout.symlink_to("/proc/self/fd/1")
    with file.open("ab") as appended:
        assert ran("t", "-c", 1, "-O", stdout, stdout=appended) == 0
    assert (stdout.is_symlink(), file.read_bytes()) == (True, b"a-0\na-0\n")
    Topic(topic.root, "u").append([Record(b"\x1b]0;x\x07")])
    main, side = pty.openpty()
    assert ran("u", "-O", os.ttyname(side)) == 0
    assert os.read(main, 100) == rb"\x1b]0;x\x07" + b"\r\n"
    os.close(main)
    os.close(side)


def test_without_standard_output_nothing_fails(topic):
    for words in ("cat", "topics", "describe"):
        given = [] if words == "topics" else ["t"]
        command = [sys.executable, "-m", "sparklog", words, str(topic.root), *given]
        closed = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        ran = subprocess.run(closed, stderr=subprocess.PIPE, env=environment, check=False)
        assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.parametrize("module", ["typer", "sparklog.cli.records", "pyarrow.lib"])
def test_an_interrupt_while_a_library_is_imported_is_silent(topic, module):
    script = """
import os, signal, sys
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
from sparklog.__main__ import main
sys.exit(main(["tail", sys.argv[2], "t"]))
"""
    ended = subprocess.run([sys.executable, "-c", script, module, str(topic.root)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_an_error_that_a_library_makes_of_an_interrupt_is_silent(run, topic, monkeypatch):
    def interrupted(*_: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            # As the modules of some libraries in C end that an interrupt comes to while they are imported.
            raise SystemError("initialization raised unreported exception") from interrupt

    monkeypatch.setattr("sparklog.log.log.Log.summaries", interrupted)
    assert run("topics", topic.root, status=130) == ""
    monkeypatch.setattr("sparklog.log.log.Log.summaries", lambda *_: 1 / 0)
    assert "ZeroDivisionError" in run("topics", topic.root, status=70)
