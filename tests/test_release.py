"""`make release` refuses a checkout, or a wheel, that is not ready."""

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
import release

FILES = ("pyproject.toml", "sparklog/__init__.py", "jvm-shim/pom.xml", "CHANGELOG.md", *release.OF_SERVER)


def git(folder: Path, *words: str, committed: str | None = None) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    environment = os.environ | ({"GIT_COMMITTER_DATE": committed} if committed else {})
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, env=environment)


@pytest.fixture
def checkout(repository, tmp_path) -> Path:
    """A checkout that can be released: the files that say its version, as they are here, and a root for later releases."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(repository / name, tmp_path / name)
    replace(tmp_path / "CHANGELOG.md", " (unreleased)", " (2026-12-01)")
    (tmp_path / "tests" / "vectors").mkdir(parents=True)
    (tmp_path / "tests" / "vectors" / f"root-{release.version(tmp_path)}.tar.gz").touch()
    results = tmp_path / "bench" / "results.ndjson"
    results.parent.mkdir()
    results.write_text(line("write", "2026-12-02T00:00:00+00:00"))
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "all")
    return tmp_path


def line(case: str, at: str, commit: str = "01234567") -> str:
    return json.dumps({"case": case, "at": at, "commit": commit}) + "\n"


def replace(file: Path, old: str, new: str) -> None:
    file.write_text(file.read_text().replace(old, new, 1))


def test_a_checkout_that_is_ready(checkout):
    assert release.refusals(checkout) == []


@pytest.mark.parametrize("place", FILES)
def test_a_wrong_version_is_refused(checkout, place):
    ours = release.version(checkout)
    replace(checkout / place, ours, "0.9.9")
    git(checkout, "commit", "--quiet", "--all", "--message", "wrong")
    found = release.refusals(checkout)
    others = [line for line in found if " has version " in line]
    assert len(others) == (5 if place == "pyproject.toml" else 1)
    assert all("0.9.9" in line and ours in line for line in others)
    assert place in "".join(others)


def test_what_is_not_ready_is_refused(checkout):
    ours = release.version(checkout)
    replace(checkout / "CHANGELOG.md", f"## {ours} (2026-12-01)", f"## {ours} (unreleased)")
    (checkout / "tests" / "vectors" / f"root-{ours}.tar.gz").unlink()
    git(checkout, "tag", f"v{ours}")
    unreleased, root, changed, tag = release.refusals(checkout)
    assert "unreleased" in unreleased
    assert "make_root.py" in root
    assert f"CHANGELOG.md, tests/vectors/root-{ours}.tar.gz" in changed
    assert f"The tag v{ours} exists" in tag


def test_results_that_are_older_than_what_they_measure_are_refused(checkout):
    results = checkout / "bench" / "results.ndjson"
    of_case = [line("write", "2026-12-02T00:00:00+00:00"), line("scan", "2026-12-04T00:00:00+00:00")]
    results.write_text("".join([line("scan", "2026-12-01T00:00:00+00:00", "89abcdef-dirty"), *of_case]))
    measured = checkout / release.MEASURED[0] / "Measured.java"
    measured.parent.mkdir(parents=True)
    measured.touch()
    git(checkout, "add", ".")
    assert [each for each in release.refusals(checkout) if "Figures" in each] == []
    git(checkout, "commit", "--quiet", "--message", "measured", committed="2026-12-03T00:00:00+00:00")
    (old,) = release.refusals(checkout)
    assert "from before 2026-12-03T00:00:00+00:00, the newest change of measured code: 1, such as 'write'" in old
    with results.open("a") as file:
        file.write(line("write", "2026-12-04T00:00:00+00:00", "89abcdef-dirty"))
    git(checkout, "commit", "--quiet", "--all", "--message", "results")
    (unknown,) = release.refusals(checkout)
    assert "of files that were not committed: 1, such as 'write'" in unknown


METADATA = """Metadata-Version: 2.4
Name: sparklog
Version: {version}
Description-Content-Type: text/markdown
{more}
{text}
"""


@pytest.mark.parametrize(
    ("version", "more", "text", "without", "fault"),
    [
        ("1.2", "", "words", None, None),
        ("1.3", "", "words", None, "has version 1.3, not 1.2"),
        ("1.2", "", "", None, "no description"),
        ("1.2", "Requires-Python: new\n", "words", None, "requires-python"),
        *(("1.2", "", "words", name, f"has no {name}") for name in release.CONTENT),
    ],
)
def test_a_wheel(tmp_path, version, more, text, without, fault):
    wheel = tmp_path / "sparklog-1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in (*release.CONTENT, "sparklog-1.2.dist-info/licenses/LICENSE"):
            if name != without:
                archive.writestr(name, "")
        archive.writestr("sparklog-1.2.dist-info/METADATA", METADATA.format(version=version, more=more, text=text))
    found = release.faults(wheel, "1.2")
    assert len(found) == (fault is not None)
    assert fault is None or fault in found[0]
