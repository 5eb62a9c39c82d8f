"""`python -m sparklog`: what it prints, and where."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import sparklog
from sparklog import options
from sparklog.__main__ import main
from sparklog.spark import session as module


@pytest.fixture
def jar(tmp_path, monkeypatch):
    jar = tmp_path / "sparklog.jar"
    jar.touch()
    monkeypatch.setattr(module, "_JAR", jar)
    return jar


def test_it_runs():
    done = subprocess.run([sys.executable, "-m", "sparklog", "options"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == options.listing() + "\n"


@pytest.fixture
def without_libraries(monkeypatch):
    """An installation without the extra of the command line."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)


def test_without_the_libraries_some_commands_work(jar, without_libraries, capsys):
    assert main(["jar"]) == 0
    assert capsys.readouterr() == (f"{jar}\n", "")
    jar.unlink()
    assert main(["conf"]) == 2
    assert main(["topics", "."]) == 2
    assert "pip install 'sparklog[cli]'" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "extra"), [("ui log", "ui"), ("serve log", "serve"), ("produce log t", "serve"), ("groups log", "cli")])
def test_without_the_libraries_an_error_names_the_extra_that_is_enough(without_libraries, capsys, words, extra):
    assert main(words.split()) == 2
    assert f"pip install 'sparklog[{extra}]'" in capsys.readouterr().err


def test_without_the_libraries_an_archive_of_a_server_asks_for_the_server(jar, without_libraries, capsys):
    assert main(["class-archive", "--serve"]) == 2
    assert "[PARTLOG_SERVE_EXTRA]" in capsys.readouterr().err
    assert main(["class-archive", "--server"]) == 2
    assert "pip install 'sparklog[cli]'" in capsys.readouterr().err


def test_without_the_libraries_a_pipe_that_ends_early_is_no_error():
    script = (
        "import importlib.util, sys; found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: None if name in ('typer', 'rich') else found(name)\n"
        "from sparklog.__main__ import main; sys.exit(main(['options']))"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout and process.stderr
    process.stdout.close()
    assert (process.wait(timeout=300), process.stderr.read()) == (141, b"")
    process.stderr.close()


def test_the_page_without_its_libraries_says_what_to_install():
    script = "import sys; sys.modules['uvicorn'] = None\nimport sparklog.ui"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert "[PARTLOG_UI_EXTRA] The web page needs the Python package uvicorn" in done.stderr
    assert "pip install 'sparklog[ui]'" in done.stderr


def test_jar(jar, capsys):
    assert main(["jar"]) == 0
    assert capsys.readouterr() == (f"{jar}\n", "")


def test_conf(jar, capsys):
    assert main(["conf"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"spark.jars {jar}",
        "spark.sql.catalog.partlog io.sparklog.catalog.PartlogCatalog",
        "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled false",
    ]


@pytest.mark.parametrize("command", ["jar", "conf"])
def test_an_error_is_one_line(command, jar: Path, capsys):
    jar.unlink()
    assert main([command]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"{sparklog.SparklogError('JAR_MISSING', jar=jar)}\n"


def test_options_are_listed_each_with_its_meaning():
    listing = " ".join(options.listing().split())
    for option in options.declared().options:
        assert f" {', '.join((option.key, *option.aliases))} (" in listing
        assert option.text.replace("`", "") in listing
    assert all(len(line) <= 100 for line in options.listing().splitlines())
