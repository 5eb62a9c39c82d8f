"""Tests need more of a machine than Python, Java and Maven: a browser with its driver, kcat, programs that make file systems, and memory.

As a program, it installs what is missing if it is root on Debian or Ubuntu. It uses nothing but Python, and never fails: tests that miss
something are skipped, and say how to get it.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DRIVERS = ("chromedriver", "chromium.chromedriver")
FOLDERS_OF_BROWSERS = ("/snap/bin",)
FOLDERS_OF_DRIVERS = ("/snap/bin", "/usr/lib/chromium", "/usr/lib/chromium-browser", "/usr/lib/chromium-browser/bin")
PACKAGES = {"debian": ("chromium", "chromium-driver"), "ubuntu": ("chromium-browser", "chromium-chromedriver")}
"""Those of a browser and its driver, by the name that a system has in /etc/os-release."""
MAKERS = {"ext4": "e2fsprogs", "xfs": "xfsprogs"}
"""The packages that make file systems."""
NO_BROWSER = "no browser that a program can drive is installed (Debian: apt-get install chromium chromium-driver)"
MEMORY_BYTES = 6 << 30
"""Room for the folders of tests at their largest, some 1 GB, and for the tests themselves beside it."""
_MANAGER_S = "15"


def installed_browser() -> tuple[str, str] | None:
    """The paths of a browser and of a driver of the same major version; None if there are none."""
    browsers = _found(BROWSERS, FOLDERS_OF_BROWSERS)
    drivers = {driver: _major(driver) for driver in _found(DRIVERS, FOLDERS_OF_DRIVERS)}
    for browser in browsers:
        major = _major(browser)
        for driver, its in drivers.items():
            if major is not None and major == its:
                return browser, driver
    return None


def browser() -> tuple[str, str] | None:
    """As `installed_browser`. For a browser without a driver, Selenium looks for one, in the network too, but not for long."""
    if found := installed_browser():
        return found
    browsers = _found(BROWSERS, FOLDERS_OF_BROWSERS)
    return (browsers[0], driver) if browsers and (driver := _fetched_driver(browsers[0])) else None


def mkfs(file_system: str) -> str | None:
    """The path of the program that makes such file systems; users who are not root do not have its folder in their PATH."""
    return shutil.which(f"mkfs.{file_system}", path=_path(("/usr/sbin", "/sbin")))


def temporary_folders(memory: Path = Path("/dev/shm"), meminfo: Path = Path("/proc/meminfo")) -> dict[str, str]:
    """The setting of pytest with which tests have their folders in memory, if there is room; a disk makes them wait for most of their time.

    The setting of a user stays: `make soak` takes a disk. So do the tests of Java, and of the promises of a local store.
    """
    name = "PYTEST_DEBUG_TEMPROOT"
    if name in os.environ or not (memory.is_dir() and meminfo.exists()):
        return {}
    available = next(int(line.split()[1]) << 10 for line in meminfo.read_text().splitlines() if line.startswith("MemAvailable:"))
    return {name: str(memory)} if min(available, shutil.disk_usage(memory).free) >= MEMORY_BYTES else {}


def _found(names: tuple[str, ...], folders: tuple[str, ...]) -> list[str]:
    """The programs of these names in PATH and then in folders; all of them, as a driver of another version may be before the right one."""
    searched = _path(folders).split(os.pathsep)
    found = (shutil.which(name, path=folder) for name in names for folder in searched)
    return list(dict.fromkeys(each for each in found if each))


def _path(folders: tuple[str, ...]) -> str:
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *folders])


def _major(program: str) -> int | None:
    """The major version that a browser or a driver tells, such as 142; None if it does not start."""
    try:
        told = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r"(\d+)\.\d+", told)
    return int(version[1]) if version else None


def _fetched_driver(browser: str) -> str | None:
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.common.selenium_manager import SeleniumManager

    asked = ["--browser", "chrome", "--browser-path", browser, "--timeout", _MANAGER_S, "--avoid-stats"]
    try:
        return SeleniumManager().binary_paths(asked)["driver_path"]
    except WebDriverException:
        return None


def _install(packages: list[str], log: Path) -> bool:
    log.parent.mkdir(exist_ok=True)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    patience = ("-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=30")
    with log.open("w") as out:
        for words in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
            done = subprocess.run(["apt-get", *patience, *words], env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    return done.returncode == 0


def main() -> None:
    try:
        system = platform.freedesktop_os_release()["ID"]
    except OSError:
        return
    if system not in PACKAGES or os.geteuid() != 0:
        return
    packages = [package for file_system, package in MAKERS.items() if mkfs(file_system) is None]
    packages += [] if installed_browser() else PACKAGES[system]
    packages += [] if shutil.which("kcat") else ["kcat"]
    if not packages:
        return
    print(f"Installing {', '.join(packages)}, which some tests need", flush=True)
    log = Path(".tools/apt-get.log")
    if not _install(packages, log):
        print(f"They could not be installed: see {log}. Tests that need them are skipped.", flush=True)


if __name__ == "__main__":
    main()
