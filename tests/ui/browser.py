"""A real browser without a window: one of those that tests/machine.py finds."""

import functools
import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

WAIT_S = 600


@functools.cache
def _axe() -> str:
    """axe-core, out of the jar that `make test` fetched."""
    jars = list((Path(__file__).resolve().parents[2] / ".tools" / "axe").glob("selenium-*.jar"))
    assert jars, "axe-core is not there: run `make test`, or `make .tools/axe/.copied`"
    with zipfile.ZipFile(jars[0]) as jar:
        return jar.read("axe.min.js").decode()


class Browser:
    """One window. `complaints` and `hosts` tell what happened since they were last called."""

    def __init__(self, binary: str, driver: str) -> None:
        options = ChromeOptions()
        # Chromium's sandbox needs rights that a container seldom gives, and the pages are the tests' own.
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,800"):
            options.add_argument(argument)
        # It does not ask the network by itself.
        for argument in ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"):
            options.add_argument(argument)
        options.binary_location = binary
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = Chrome(options=options, service=Service(driver))
        self.driver.set_script_timeout(WAIT_S)  # on a busy machine, axe-core takes seconds for a page
        self.look()

    def look(self, *, dark: bool = False, phone: bool = False) -> None:
        """How the page is looked at."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        width, height = (375, 812) if phone else (1280, 800)
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def open(self, url: str, until: str) -> None:
        """Opens an address, and waits until an element of the page matches a CSS selector."""
        self.driver.get(url)
        self.find(until)

    def find(self, selector: str) -> WebElement:
        """The first element that matches, as soon as there is one."""
        self.until(lambda: self.all(selector), selector)
        return self.all(selector)[0]

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that match, at one moment."""
        return list(self.run("return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector))

    def press(self, selector: str, text: str) -> None:
        """Clicks the element of this text, as soon as it is there."""
        script = "return [...document.querySelectorAll(arguments[0])].find((each) => each.textContent.trim() === arguments[1]) || null"
        self.until(lambda: self.run(script, selector, text), f"{selector} {text!r}")
        self.run(script, selector, text).click()

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def barriers(self) -> list[str]:
        """Faults that axe-core finds, which keep people from using the page: rule, how bad it is, and where."""
        self.run(_axe())
        found = self.driver.execute_async_script("axe.run().then(arguments[0], (error) => arguments[0]({error: String(error)}))")
        assert "error" not in found, found["error"]
        return [f"{each['id']} ({each['impact']}): {[node['html'][:120] for node in each['nodes'][:3]]}" for each in found["violations"]]

    def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Waits until a condition is true."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, f"{what or condition} did not come true at {self.driver.current_url}: {self.texts('main')}"
            time.sleep(0.02)

    def complaints(self) -> list[str]:
        """The lines in the console."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def hosts(self) -> set[str]:
        """The hosts, with ports, that pages asked for something."""
        found = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.add(urlsplit(message["params"]["request"]["url"]).netloc)
        return found

    def quit(self) -> None:
        self.driver.quit()
