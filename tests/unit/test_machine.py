"""`tests/machine.py`: browsers of Debian, Ubuntu and Google are found with a driver that fits, and what is missing is installed.

The folders of tests are in memory where there is room.
"""

import os
import platform
from pathlib import Path

import machine
import pytest


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Makes scripts, of which those in `bin` are in PATH and those in `lib` are where drivers are looked for; there are no others."""
    monkeypatch.setattr(machine, "FOLDERS_OF_BROWSERS", ())
    monkeypatch.setattr(machine, "FOLDERS_OF_DRIVERS", (str(tmp_path / "lib"),))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def programs(scripts: dict[str, str]) -> Path:
        for name, script in scripts.items():
            program = tmp_path / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
        return tmp_path

    return programs


CHROMIUM, DRIVER = "echo 'Chromium 142.0.7444.59 built on Debian GNU/Linux 12'", "echo 'ChromeDriver 142.0.7444.59 (ea1f9d1)'"
CHROME, DRIVER_143 = "echo 'Google Chrome 143.0.7499.40 '", "echo 'ChromeDriver 143.0.7499.40 (dbf4dd8)'"


@pytest.mark.parametrize(
    ("there", "found"),
    [
        ({"bin/chromium": CHROMIUM, "bin/chromedriver": DRIVER}, ("bin/chromium", "bin/chromedriver")),
        ({"bin/chromium-browser": CHROMIUM, "bin/chromium.chromedriver": DRIVER}, ("bin/chromium-browser", "bin/chromium.chromedriver")),
        ({"bin/google-chrome-stable": CHROME, "lib/chromedriver": DRIVER_143}, ("bin/google-chrome-stable", "lib/chromedriver")),
        (
            {"bin/chromium": CHROMIUM, "bin/google-chrome": CHROME, "bin/chromedriver": DRIVER_143},
            ("bin/google-chrome", "bin/chromedriver"),
        ),
        ({"bin/chromium": CHROMIUM, "bin/chromedriver": DRIVER_143, "lib/chromedriver": DRIVER}, ("bin/chromium", "lib/chromedriver")),
        ({"bin/chromium": "exit 1", "bin/chromedriver": DRIVER}, None),
        ({"bin/chromium": CHROMIUM, "bin/chromedriver": "exit 1"}, None),
        ({"bin/chromium": CHROMIUM}, None),
        ({"bin/chromedriver": DRIVER}, None),
    ],
)
def test_a_browser_and_the_driver_that_fits(put, there, found):
    folder = put(there)
    assert machine.installed_browser() == (found and tuple(str(folder / each) for each in found))


@pytest.fixture
def installed(put, tmp_path, monkeypatch):
    """Runs the program as a user on a system, with an `apt-get` that ends with a status; the words it was given at last."""

    def run(system: str | None, user: int = 0, status: int = 0) -> str:
        def release():
            if system is None:
                raise OSError("no os-release")
            return {"ID": system}

        monkeypatch.setattr(platform, "freedesktop_os_release", release)
        monkeypatch.setattr(os, "geteuid", lambda: user)
        monkeypatch.setattr(machine, "mkfs", lambda file_system: None if file_system == "xfs" else "/sbin/mkfs")
        monkeypatch.chdir(tmp_path)
        put({"bin/apt-get": f'echo "$@"; exit {status}'})
        machine.main()
        log = tmp_path / ".tools" / "apt-get.log"
        return log.read_text().splitlines()[-1].partition("--no-install-recommends ")[2] if log.exists() else ""

    return run


def test_root_installs_what_is_missing(put, installed, capsys):
    assert installed("debian") == "xfsprogs chromium chromium-driver kcat"
    assert installed("ubuntu") == "xfsprogs chromium-browser chromium-chromedriver kcat"
    assert "could not" not in capsys.readouterr().out
    put({"bin/chromium": CHROMIUM, "bin/chromedriver": DRIVER, "bin/kcat": ""})
    assert installed("debian") == "xfsprogs"


@pytest.mark.parametrize(("system", "user"), [("debian", 1000), ("fedora", 0), (None, 0)])
def test_others_install_nothing_and_are_told_nothing(installed, capsys, system, user):
    assert installed(system, user) == ""
    assert capsys.readouterr().out == ""


def test_packages_that_cannot_be_installed(installed, capsys):
    installed("debian", status=100)
    assert capsys.readouterr().out.splitlines()[-1] == (
        "They could not be installed: see .tools/apt-get.log. Tests that need them are skipped."
    )


@pytest.mark.parametrize(
    ("available_kb", "given", "wanted"),
    [(1024, None, True), (1023, None, False), (1024, "mine", False)],
    ids=["there is room", "there is not", "the user says where"],
)
def test_the_folders_of_tests_are_in_memory_if_it_has_room(tmp_path, monkeypatch, available_kb, given, wanted):
    variable = "PYTEST_DEBUG_TEMPROOT"
    monkeypatch.setattr(machine, "MEMORY_BYTES", 1 << 20)
    monkeypatch.delenv(variable, raising=False)
    if given:
        monkeypatch.setenv(variable, given)
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemTotal:       99999999 kB\nMemAvailable:   {available_kb} kB\n")
    assert machine.temporary_folders(tmp_path, meminfo) == ({variable: str(tmp_path)} if wanted else {})
    assert machine.temporary_folders(tmp_path / "none", meminfo) == {}
