"""`make release`: checks a checkout, builds and tests its wheel, and prints the next steps. It uploads nothing."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree

from packaging.metadata import ExceptionGroup, Metadata

ROOT = Path(__file__).resolve().parents[1]
CONTENT = ("sparklog/jars/sparklog.jar", "sparklog/py.typed", "sparklog/spec/errors.json", "sparklog/ui/web/index.html")
"""Files that are not Python, one of each kind."""

MEASURED = (
    *(f"jvm-shim/src/main/java/io/sparklog/{name}" for name in ("commits", "format", "read", "storage", "write")),
    "jvm-shim/serve/src/main",
)
"""The folders whose changes make a measurement old."""

OF_SERVER = ("jvm-shim/serve/pyproject.toml", "jvm-shim/serve/stores/pyproject.toml")
"""The wheels of the server's jars, which extras ask for in the version of sparklog."""


def version(root: Path) -> str:
    return _found(root / "pyproject.toml", r'^version = "(.*)"$')


def refusals(root: Path) -> list[str]:
    """The reasons why this checkout cannot be released, each with a remedy; empty if it can."""
    ours = version(root)
    pom = ElementTree.parse(root / "jvm-shim" / "pom.xml").getroot()
    others = {
        "sparklog/__init__.py": _found(root / "sparklog" / "__init__.py", r'^__version__ = "(.*)"$'),
        "jvm-shim/pom.xml": pom.findtext("m:version", namespaces={"m": "http://maven.apache.org/POM/4.0.0"}),
        "CHANGELOG.md": _found(root / "CHANGELOG.md", r"^## (\S+)"),
        **{place: version(root / Path(place).parent) for place in OF_SERVER},
    }
    found = [f"{place} has version {its}, pyproject.toml has {ours}: write one version." for place, its in others.items() if its != ours]
    if "unreleased" in _found(root / "CHANGELOG.md", r"^## (.*)$"):
        found.append(f"CHANGELOG.md calls {ours} unreleased: write the date of the release there.")
    if not (root / "tests" / "vectors" / f"root-{ours}.tar.gz").is_file():
        found.append(f"tests/vectors has no root of {ours}, which later releases read: run python tests/vectors/make_root.py.")
    if changed := _git(root, "status", "--porcelain"):
        found.append(f"Files are not committed: {', '.join(line[3:] for line in changed.splitlines())}. Commit or remove them.")
    if _git(root, "tag", "--list", f"v{ours}"):
        found.append(f"The tag v{ours} exists: raise the version, or delete the tag if {ours} was not published.")
    return found + old_results(root)


def old_results(root: Path) -> list[str]:
    """The reasons why figures on pages are not those of this checkout: by the newest line of each case in bench/results.ndjson."""
    lines = map(json.loads, (root / "bench" / "results.ndjson").read_text(encoding="utf-8").splitlines())
    newest = {line["case"]: line for line in lines}.values()
    changed = _git(root, "log", "-1", "--format=%cI", "--", *MEASURED)
    unknown = [line["case"] for line in newest if line["commit"].endswith("-dirty")]
    old = [line["case"] for line in newest if changed and datetime.fromisoformat(line["at"]) < datetime.fromisoformat(changed)]
    remedy = "Commit, run make bench and make bench-stores, and remove the lines of cases that are gone."
    of = {f"from before {changed}, the newest change of measured code": old, "of files that were not committed": unknown}
    return [
        f"Figures in bench/results.ndjson {words}: {len(cases)}, such as {cases[0]!r}. {remedy}" for words, cases in of.items() if cases
    ]


def faults(wheel: Path, expected: str) -> list[str]:
    """The faults of a wheel: metadata that an index refuses, and files that are missing."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        folder = f"sparklog-{expected}.dist-info"
        said = archive.read(f"{folder}/METADATA") if f"{folder}/METADATA" in names else b""
    try:
        metadata = Metadata.from_email(said, validate=True)
    except ExceptionGroup as errors:
        return [f"{wheel.name}: {error}" for error in errors.exceptions]
    found = [f"{wheel.name} has no {name}." for name in (*CONTENT, f"{folder}/licenses/LICENSE") if name not in names]
    if str(metadata.version) != expected:
        found.append(f"{wheel.name} has version {metadata.version}, not {expected}.")
    if not (metadata.description or "").strip() or metadata.description_content_type != "text/markdown":
        found.append(f"{wheel.name} has no description in Markdown, which an index shows.")
    return found


def main() -> int:
    if found := refusals(ROOT):
        print("This checkout cannot be released:", *found, sep="\n  ")
        return 1
    ours = version(ROOT)
    for folder in ("dist", "sparklog/jars", "jvm-shim/target/classes", "jvm-shim/serve/target/classes"):
        shutil.rmtree(ROOT / folder, ignore_errors=True)
    subprocess.run(["make", "--no-print-directory", "wheel"], cwd=ROOT, check=True)
    wheel = ROOT / "dist" / f"sparklog-{ours}-py3-none-any.whl"
    if found := faults(wheel, ours):
        print("The wheel cannot be released:", *found, sep="\n  ")
        return 1
    print("Installing the wheel into empty environments, and pasting the README there", flush=True)
    tested = subprocess.run([sys.executable, "-m", "pytest", "-q", "tests/test_wheel.py"], cwd=ROOT, check=False)
    if tested.returncode:
        return 1
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    print(f"dist/{wheel.name} can be released: {wheel.stat().st_size:,} bytes, SHA-256 {digest}.")
    print(f"Nothing was uploaded. Next:\n  make full\n  git tag v{ours} && git push origin v{ours}\n  twine upload dist/*.whl")
    return 0


def _found(file: Path, pattern: str) -> str:
    """The group of the first line that fits; empty if no line does."""
    match = re.search(pattern, file.read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else ""


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.rstrip("\n")


if __name__ == "__main__":
    sys.exit(main())
