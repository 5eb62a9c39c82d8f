"""Rules that linters do not check: names, and that facts stated in two places agree."""

import ast
import io
import json
import pickle
import re
import subprocess
import sys
import tokenize
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import sparklog
from sparklog import errors, options
from sparklog.ondisk import config as topic_config

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest needs it

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "sparklog"
JAVA = [ROOT / "jvm-shim" / "src", ROOT / "jvm-shim" / "serve" / "src"]

PUBLIC = [
    "CallError",
    "Consumer",
    "ConsumerRecord",
    "DataError",
    "GenerationFencedError",
    "Log",
    "Placement",
    "Producer",
    "RecordFuture",
    "RecordMetadata",
    "RetryError",
    "SparklogError",
    "Topic",
    "TopicPartition",
    "UnknownOutcomeError",
    "UpgradeError",
    "attach",
    "configure",
    "jar",
    "partition_for",
    "progress",
    "session",
    "txn_options",
]


def sources() -> list[Path]:
    """All files that people write."""
    kinds = {".py", ".java", ".json", ".md", ".toml", ".xml", ".ipynb", ""}
    made = {"target", "jars", "vectors", "__pycache__", ".jqwik-database"}
    found = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]  # a file where this is one of several work trees
    for folder in (".ci", "bench", "docs", "jvm-shim", "notebooks", "sparklog", "tests"):
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file() and not made & set(path.relative_to(ROOT).parts)]
    return sorted(path for path in found if path.suffix in kinds)


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def java(half: str = "main") -> list[Path]:
    """The sources of the connector and of the server; with `test` their tests, with `*` both."""
    return sorted(path for folder in JAVA for path in folder.glob(f"{half}/**/*.java"))


def test_public_names():
    assert sparklog.__all__ == PUBLIC
    assert all(hasattr(sparklog, name) for name in PUBLIC)


def test_a_public_name_shows_the_module_from_which_users_import_it():
    """In a repr, in an error of a program and in `help`."""
    shown = {name: getattr(sparklog, name).__module__ for name in sparklog.__all__}
    assert shown == dict.fromkeys(sparklog.__all__, "sparklog")
    assert pickle.loads(pickle.dumps(sparklog.TopicPartition("t", 1))) == ("t", 1)
    assert list(get_type_hints(sparklog.ConsumerRecord)) == list(sparklog.ConsumerRecord._fields)


def test_there_is_no_dumping_ground():
    dumps = re.compile(r"(utils?|commons?|helpers?|misc)", re.IGNORECASE)
    assert [path for path in sources() if dumps.fullmatch(path.stem) or dumps.fullmatch(path.parent.name)] == []


def test_a_name_of_a_class_stands_for_one_thing():
    """A word such as `State` would otherwise mean a topic here and a group there."""
    places: dict[str, list[str]] = {}
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_path_of_a_machine():
    machine = re.compile(r"(?<![\w.\]>}*-])/(?:" + "|".join(("work", "root", "home", "Users", "mnt")) + r")/\w")
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in sources()
        for line in path.read_text(encoding="utf-8").splitlines()
        if machine.search(line)
    ]
    assert found == []


def test_nothing_is_left_for_later():
    words = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")))
    found = [path for path in sources() if path.suffix in {".py", ".java"} and words.search(path.read_text())]
    assert found == []


def test_no_seed_of_a_test_comes_from_the_clock():
    """But by `draw_seed` and `Seed.draw`, which `make soak` asks for new ones."""
    drawn = re.compile(r"[Ss]eed\w* = (System|time|random|secrets)\.|Random\((time|random|secrets|System)\.")
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in sources()
        if "tests" in path.parts or "test" in path.parts
        for line in path.read_text(encoding="utf-8").splitlines()
        if drawn.search(line) and path.name not in ("handmade.py", "Seed.java", "test_tidy.py")
    ]
    assert found == []


def test_a_source_file_has_one_idea():
    """600 lines hold one. The docstrings of a package do not count: those of public names have an example each."""
    long = {}
    for path in sources():
        name = str(path.relative_to(ROOT))
        lines = len(path.read_text(encoding="utf-8").splitlines()) if path.suffix in {".py", ".java"} else 0
        if path.is_relative_to(PACKAGE) and path.suffix == ".py":
            lines -= lines_of_docstrings(path)
        if lines > 600:
            long[name] = lines
    assert long == {}


def lines_of_docstrings(path: Path) -> int:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    texts = [node.body[0] for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None]
    return sum((each.end_lineno or each.lineno) - each.lineno for each in texts)


def test_no_name_of_java_stands_for_two_types():
    """Also not in two packages, or within two classes: a reader who sees the name alone knows the type."""
    named = re.compile(r"^\s*(?:[a-z]+ )*(?:class|record|@?interface|enum) ([A-Z]\w*)", re.MULTILINE)
    places = Counter(name for path in java() for name in named.findall(path.read_text(encoding="utf-8")))
    assert len(places) > 500
    assert [name for name, count in places.items() if count > 1] == []


def test_lines_of_java_are_not_wider_than_those_of_python():
    """The formatter wraps code at 140 columns, and neither strings nor comments."""
    wide = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources()
        if path.suffix == ".java"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 140
    ]
    assert wide == []


def test_links_between_pages_lead_somewhere():
    def anchors(page: Path) -> set[str]:
        titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}

    broken = []
    for page in (path for path in sources() if path.suffix == ".md"):
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            if "://" not in link and not (target.exists() and (not anchor or anchor in anchors(target))):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert broken == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/ARCHITECTURE.md", "docs/glossary.md", "docs/spark-calls.md"])
def test_a_page_about_the_code_names_what_exists(page):
    """Files, folders, tests and classes: in backticks, or in a figure."""
    python = [*modules(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in (*java("*"), *python))
    classes = set(re.findall(r"\b(?:class|interface|record|enum) (\w+)", code))
    places = [ROOT, PACKAGE, *(folder / "main" / "java" / "io" / "sparklog" for folder in JAVA)]
    text = (ROOT / page).read_text(encoding="utf-8")
    figures = "".join(re.findall(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    drawn = "".join(
        re.findall(r"<pre>\{@code\n(.*?)\}</pre>", "\n".join(file.read_text(encoding="utf-8") for file in java("*")), re.DOTALL)
    )
    missing = {word for word in re.findall(r"(?<![.\w])(?:[A-Z][a-z]+){2,}\b", figures + drawn) if word not in classes}
    for word in re.findall(r"`([^`\n]+)`", text.replace(figures, "")):
        if re.fullmatch(r"[A-Z][a-z]\w*", word):
            found = word in classes
        elif re.fullmatch(r"test_\w+", word):
            found = f"def {word}(" in code
        elif re.fullmatch(r"[\w.-]+(/[\w.-]+)*(/|\.(py|java|json|ndjson|md))", word) and not word.startswith("_partlog"):
            found = any((place / word).exists() for place in places)
        else:
            continue
        missing |= set() if found else {word}
    assert missing == set()


def test_contributing_knows_every_folder():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    module = "jvm-shim/(?:serve/)?src"
    known = re.compile(rf"{module}/main/java/io/sparklog/(\w+)|({module}/test)/.*|(jvm-shim)(/.*)?")
    folders = {known.sub(lambda found: found[1] or found[2] or found[3], str(Path(path).parent)) for path in listed} - {"."}
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert {folder for folder in folders if f"`{folder}/`" not in text} == set()


def test_the_generated_reference_is_fresh(reference):
    for name, text in reference["generate_reference"]().items():
        page = ROOT / "docs" / "reference" / name
        assert page.is_file() and page.read_text(encoding="utf-8") == text, f"{name} is not fresh: run make docs"
    guide = (ROOT / "docs" / "guide" / "from-kafka.md").read_text(encoding="utf-8")
    assert reference["with_kafka_tables"](guide) == guide, "from-kafka.md is not fresh: run make docs"
    architecture = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert reference["with_layers"](architecture, ROOT / "docs") == architecture, "ARCHITECTURE.md is not fresh: run make docs"


def test_packages_of_java_point_down_the_table(reference):
    """The table of CONTRIBUTING.md has every package, and each above the packages that it uses."""
    table = reference["may_use"](ROOT / "docs")
    rows = re.findall(r"^\| `([\w/]+)/` \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    listed = [row.replace("/", ".") for row in rows if row.replace("/", ".") in table]
    folders = {file.parent.as_posix().rpartition("/io/sparklog/")[2].replace("/", ".") for file in java()} - {"serve"}
    assert sorted(listed) == sorted(table) and folders <= set(table)
    assert [(package, used) for package in table for used in table[package] if listed.index(used) < listed.index(package)] == []


def test_the_page_of_the_architecture_is_short_and_has_each_package(reference):
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert page.count("\n") <= 110
    packages = {f"**`{name}`**" for name in reference["may_use"](ROOT / "docs")}
    packages |= {f"**`{folder.name}/`**" for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()} | {"**`spec/`**"}
    assert {name for name in packages if name not in page} == set()


def test_the_pages_of_results_are_fresh():
    script = "from bench import report; assert all(page.read_text(encoding='utf-8') == text for page, text in report.pages().items())"
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False)
    assert ran.returncode == 0, "docs/performance.md, bench/RESULTS.md or docs/guide/stores.md is not fresh: run python -m bench.report"


def test_each_figure_of_the_front_page_is_measured():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = map(json.loads, (ROOT / "bench" / "results.ndjson").read_text(encoding="utf-8").splitlines())
    newest = {line["case"]: line for line in lines}
    write = newest["write, uncompressed"]
    scan = newest["scan after 120 writes of 1,000 rows, sum(length(value))"]
    consume = newest["consume without Spark, beside kafka-python from a broker"]
    remote, parquet = (newest[f"S3 at 30 ms: scan of many records{of}"] for of in ("", ", parquet"))
    assert {line["cores"] for line in (write, scan, consume, remote)} == {2}
    assert (write["records"], scan["records"]) == (10_000_000, 120_000)
    rows = {
        f"{write['ratios']['parquet uncompressed']:.1f}": "Spark writes 10 million records | Parquet, uncompressed",
        f"{scan['ratios']['delta']:.1f}": "Spark scans a topic after 120 writes of 1,000 records | a Delta table",
        f"{consume['ratios']['kafka-python']:.1f}": "a Python consumer reads a topic record by record | kafka-python and a broker",
    }
    assert [row for figure, words in rows.items() if (row := f"| {words} | {figure} |") not in page] == []
    slower = f"{remote['s'] / parquet['s']:.1f}"
    assert remote["records"] == parquet["records"] == 2_000_000
    many = "A scan of 2 million records from S3, where each request takes 30 ms"
    assert f"{many}, takes {slower} times as long as a scan of Parquet." in page
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    versions = {"3.10", "4.2", "2.0"}  # of Python, of Spark, of the licence
    assert set(re.findall(r"(?<![\d.])\d+\.\d+(?![\d.]*\d)", prose)) - versions == {*rows, slower}


def test_the_first_screen_of_the_front_page_has_rows():
    """A stranger sees rows of a topic, below the program that makes them."""
    screen = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:40])
    assert [part for part in ("Apache License 2.0", "pip install", "import sparklog", "|partition|offset|") if part not in screen] == []


def test_the_claims_of_the_guide_about_dollars_are_measured():
    page = (ROOT / "docs" / "guide" / "stores.md").read_text(encoding="utf-8")
    lines = map(json.loads, (ROOT / "bench" / "results.ndjson").read_text(encoding="utf-8").splitlines())
    newest = {line["case"].removeprefix("S3 at 30 ms: "): line for line in lines}

    def dollars(case):
        return sum(number * (0.4 if kind in ("GET", "HEAD") else 5) for kind, number in newest[case]["kinds"].items() if kind != "DELETE")

    checkpoint = "checkpoint in the store, a trigger, Spark's default checkpoint manager"
    smaller = "checkpoint in the store, a trigger, checkpoint manager of FileSystem"
    assert "In S3 it costs more than the source and the sink together." in page
    assert dollars(checkpoint) > dollars("sink, a trigger of 1,000 rows") + dollars("source, a trigger of 1,000 rows")
    assert "this setting halves its requests" in page
    assert newest[checkpoint]["requests"] == pytest.approx(2 * newest[smaller]["requests"], rel=0.1)
    assert f"4 PUTs a second or ${4 * 86_400 * 5 / 1e6:.2f} a day" in page


def test_versions_agree():
    pyproject = (ROOT / "pyproject.toml").read_text()
    project = ElementTree.parse(ROOT / "jvm-shim" / "pom.xml").getroot()
    maven = {"m": "http://maven.apache.org/POM/4.0.0"}
    ours = project.findtext("m:version", namespaces=maven)
    spark = project.findtext("m:properties/m:spark.version", namespaces=maven)
    assert f'\nversion = "{ours}"\n' in pyproject
    assert ours == sparklog.__version__
    minor = sys.modules["sparklog.spark.session"]._BUILT_FOR
    assert spark is not None
    assert spark.startswith(f"{minor}.")
    assert f'"pyspark=={minor}.*"' in pyproject


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_the_constraints_have_each_package_that_the_project_asks_for(python):
    """Once, in a version that it may have."""
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    lines = map(Requirement, (ROOT / "tests" / "constraints.txt").read_text().splitlines())
    pinned = [(canonicalize_name(each.name), each.specifier) for each in lines if each.marker is None or each.marker.evaluate(environment)]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for text in [*project["dependencies"], *(each for extra in project["optional-dependencies"].values() for each in extra)]:
        asked = Requirement(text)
        versions = [str(specifier).removeprefix("==") for name, specifier in pinned if name == canonicalize_name(asked.name)]
        fits = len(versions) == 1 and asked.specifier.contains(versions[0])
        assert fits or asked.name.startswith("sparklog"), f"{text} has {versions} in tests/constraints.txt: run make constraints"


NOT_OF_USERS = {"demo", "dev", "site", "test"}


def test_a_wheel_is_built_without_the_environment_of_the_tests():
    """PySpark and what the tests need are 1.8 GB, of which a user who builds the wheel needs nothing."""
    command = ["make", "--dry-run", "--always-make", "wheel"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "-m build" in said
    assert ".venv" not in said and "[dev]" not in said


def test_the_page_of_installing_has_each_extra():
    """With the packages that it installs: its own, and the extras that it contains."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    project = {name: set() for name in extras.keys() - NOT_OF_USERS}
    for name in project:
        for asked in map(Requirement, extras[name]):
            ours = asked.name == "sparklog"
            project[name] |= asked.extras if ours else {asked.name + (f"[{','.join(sorted(asked.extras))}]" if asked.extras else "")}
    page = (ROOT / "docs" / "guide" / "installing.md").read_text()
    rows = re.findall(r"^\| `([\w-]+)` \| (.*?) \|", page, re.MULTILINE)
    assert {name: set(re.findall("`(.+?)`", packages)) for name, packages in rows} == project


def test_an_extra_that_is_named_exists():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys()
    named: dict[str, set[str]] = {}
    for path in sources():
        for found in re.findall(r"(?:sparklog|\.whl)\[([a-z,-]+)\]", path.read_text(encoding="utf-8")):
            named.setdefault(str(path.relative_to(ROOT)), set()).update(found.split(","))
    assert {path: names - extras for path, names in named.items() if names - extras} == {}
    assert "docs/guide/installing.md" in named


# --- errors: each id is declared, used, and raised with the parameters of its text


def java_calls(text: str) -> Iterator[tuple[str, set[str] | None]]:
    """Ids and parameter names of PartlogException.of(…) and .caused(cause, …); None for names not written out."""
    for call in re.finditer(r"PartlogException\s*\.\s*(of|caused)\s*\(", text):
        arguments = java_arguments(text, call.end())
        if call[1] == "caused":
            arguments = arguments[1:]
        if arguments and (id := re.fullmatch(r'"(\w+)"', arguments[0])):
            names = [re.fullmatch(r'"(\w+)"', argument) for argument in arguments[1::2]]
            yield id[1], {name[1] for name in names if name} if all(names) else None


def java_arguments(text: str, at: int) -> list[str]:
    """The arguments of the call whose opening parenthesis is before `at`."""
    arguments, depth, start = [], 0, at
    for token in re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|//[^\n]*|[(){}\[\],]').finditer(text, at):
        if token[0] in "([{":
            depth += 1
        elif token[0] in ")]}" or (token[0] == "," and depth == 0):
            if depth == 0:
                arguments.append(text[start : token.start()].strip())
                start = token.end()
                if token[0] == ")":
                    break
            else:
                depth -= 1
    return arguments


def test_java_arguments():
    text = 'of("A", "b", f(x, "),("), "c", \',\') + 1, 2)'
    assert java_arguments(text, 3) == ['"A"', '"b"', 'f(x, "),(")', '"c"', "','"]


def python_calls(text: str) -> Iterator[tuple[str, set[str]]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("SparklogError") and node.args:
            id = node.args[0]
            if isinstance(id, ast.Constant):
                yield str(id.value), {str(keyword.arg) for keyword in node.keywords}


def raised() -> Iterator[tuple[str, str, set[str] | None]]:
    for path in java():
        yield from ((path.name, *call) for call in java_calls(path.read_text()))
    for path in modules():
        yield from ((path.name, *call) for call in python_calls(path.read_text()))


def test_an_error_that_is_raised_is_declared_with_these_parameters():
    declared = errors.declared()
    wrong = [
        (file, id, names)
        for file, id, names in raised()
        if id not in declared or (names is not None and names != declared[id].parameters())
    ]
    assert wrong == []


def test_an_error_that_is_declared_is_raised():
    code = "\n".join(path.read_text() for path in (*java(), *modules()))
    assert [id for id in errors.declared() if f'"{id}"' not in code] == []


def test_an_option_that_is_declared_is_read():
    code = "\n".join(path.read_text() for path in java())

    def is_read(key: str) -> bool:
        # The options of a read's start and end have keys that the code composes.
        end = re.match("starting|ending", key)
        return f'"{key}"' in code or (end is not None and all(f'"{part}"' in code for part in (end[0], key[end.end() :])))

    assert [option.key for option in options.declared().options if not is_read(option.key)] == []


def test_the_python_reader_has_the_topic_settings_of_the_options():
    """The reader has a table of its own, because it follows FORMAT.md alone. Both must allow the same values."""
    own = {
        key: (values.start, values.stop - 1, values.step) if isinstance(values, range) else getattr(values, "pattern", values)
        for key, values in topic_config._KEYS.items()
    }
    declared = {
        option.key: option.values if option.type == "choice" else option.pattern or (option.min, option.max, 1)
        for option in options.declared().options
        if "topic" in option.scopes
    }
    assert own == declared
    assert {option.key for option in options.declared().options if option.optional} == topic_config._OPTIONAL


# --- texts: a sentence begins with its subject, and a program is "the writer", not "who"

HIDDEN_SUBJECT = re.compile(
    r"(?:^|(?<=[.!?] )|(?<=[.!?]\) ))(?:Of|What(?:ever)?|Who(?:ever|m|se)?)\b(?![^.!?]*\?)[^.!?]*"  # a question may begin so
    r"|\b(?:[Nn]obody|[Ww]hom?ever)\b[^.!?]*"
)
PARAGRAPH = re.compile(r"(?:^|\n)\s*(?:[*-]|\d+\.) |\n[ \t]*\n|<p>|<li>|@(?:param \S+|throws \S+|return)|\|")
STRING_OR_COMMENT = re.compile(r'"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\])+\'|(/\*[\s\S]*?\*/|//[^\n]*(?:\n[ \t]*//[^\n]*)*)')
HEADING_OR_CODE = re.compile(r"^ *```.*?^ *```$|^#.*?$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def texts(path: Path) -> Iterator[str]:
    """Comments and docstrings of code; a page without its headings and its code; the texts of a specification."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".java":
        for comment in STRING_OR_COMMENT.findall(text):
            yield re.sub(r"^[ \t]*(?:/\*\*?|\*(?!/)|//)|\*/$", "", comment, flags=re.MULTILINE)
    elif path.suffix == ".py":
        comments, last = "", 0
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                comments += ("\n" if token.start[0] == last + 1 else "\n\n") + token.string.lstrip("# ")
                last = token.start[0]
        yield comments
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                yield node.value.value
    elif path.suffix == ".md":
        yield HEADING_OR_CODE.sub("", text)
    elif path.parent == PACKAGE / "spec":
        yield from re.findall(r'"((?:\\.|[^"\\])*)"', text)


def hidden_subjects(text: str) -> list[str]:
    """The parts of a text that begin a sentence without its subject, or hide a program behind a word for people."""
    paragraphs = (" ".join(each.split()) for each in PARAGRAPH.split(text))
    return [found[0] for each in paragraphs for found in HIDDEN_SUBJECT.finditer(each)]


def test_a_sentence_begins_with_its_subject():
    found = {str(path.relative_to(ROOT)): [part for text in texts(path) for part in hidden_subjects(text)] for path in sources()}
    assert {path: parts for path, parts in found.items() if parts} == {}


@pytest.mark.parametrize(
    ("name", "text", "parts"),
    [
        ("a.py", '"""What is read."""\nx = 1  # Of a file.\n# Read by\n# What.md.\n', ["Of a file", "What is read"]),
        ("a.py", "# Who reads it? The writer knows, whoever\n# it is.\n", ["whoever it is"]),
        (
            "A.java",
            '/** It is (read). What {@code s}\n * is. @param s What it is */\ns = "// Of it"; // Whose?\n',
            ["What {@code s} is", "What it is"],
        ),
        ("a.md", "# What is it\n\n| a | Who may |\n\n* Of *two*, one\n\n**What remains.** `What`\n", ["Who may", "Of *two*, one"]),
    ],
)
def test_hidden_subjects(tmp_path, name, text, parts):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert [part for each in texts(tmp_path / name) for part in hidden_subjects(each)] == parts


HABITS = {
    "what … for a thing that has a name": re.compile(
        r"\bwhat (?:is|was|are|were|has|had|they|it|the|an?|that|this|each|every|no|other|all|both|some|only|belongs|comes|follows|needs"
        r"|goes|stays|holds|happens|makes|can|must|may|will|would)\b"
    ),
    "a pronoun in place of the noun": re.compile(
        r"\b(?:the ones?|those|that|one) (?:of|that|which|with|without|in|at|from|below|above|whose)\b"
    ),
    "there is none": re.compile(r"\b(?:is|are|was|were) none\b|\bis no (?!longer\b)[a-z]|\bnone of\b"),
    "a text that tells": re.compile(
        r"\btells of\b|\bsays how\b|\bis told\b|\btells? (?:how|which|what|whether)\b|\bsays? (?:which|what|whether|so)\b"
    ),
    "a word with a plainer one": re.compile(r"\bby now\b|\bany more\b|\bc[ao]me to be\b|\bso long as\b|\banew\b|\bwhatever\b|\bof which\b"),
}
MOST_HABITS = {
    "pages": (8, 34, 4, 10, 2),
    "Java": (0, 2, 0, 0, 0),
    "Python": (3, 22, 5, 7, 4),
    "specifications": (0, 11, 4, 3, 2),
}
"""The counts of today, in the order of HABITS. Lower a count after you have removed some."""


def kind_of(path: Path) -> str | None:
    """The kind of texts in a file whose habits are counted; None for tests, benchmarks, and the changelog."""
    if path.suffix == ".md" and (path.parent == ROOT or "docs" in path.parts):
        return None if path.name == "CHANGELOG.md" else "pages"
    if path.suffix == ".java" and any(path.is_relative_to(folder / "main") for folder in JAVA):
        return "Java"
    if PACKAGE in path.parents:
        return {".py": "Python", ".json": "specifications"}.get(path.suffix)
    return None


def habits(text: str) -> list[int]:
    """The counts of each habit in a text without code."""
    text = " ".join(re.sub(r"`[^`\n]*`|\{@\w+ [^}]*\}", "x", text).split())
    return [len(habit.findall(text)) for habit in HABITS.values()]


def test_habits_of_prose_do_not_come_back():
    found = {kind: [0] * len(HABITS) for kind in MOST_HABITS}
    for path in sources():
        if kind := kind_of(path):
            for text in texts(path):
                found[kind] = [count + more for count, more in zip(found[kind], habits(text), strict=True)]
    assert {kind: counts for kind, counts in found.items() if any(map(int.__gt__, counts, MOST_HABITS[kind]))} == {}


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("Returns what is there.\nWhat a reader sees,\nand what\nthe `what is` does.", [2, 0, 0, 0, 0]),
        ("The state, and the one of the topic that was deleted; those\nwithout records.", [0, 2, 0, 0, 0]),
        ("There is none. It is no error, and none of them.", [0, 0, 3, 0, 0]),
        ("It says which file, and the caller is told whether.", [0, 0, 0, 2, 0]),
        ("It is gone by now, whatever {@code by now} is; it begins anew.", [0, 0, 0, 0, 3]),
        ("The reader decides which file it reads, and which of them is damaged. It notes a file that exists.", [0, 0, 0, 0, 0]),
    ],
)
def test_habits(text, counts):
    assert habits(text) == counts


def test_what_a_shell_completes_are_the_names_that_users_import():
    shown = {name for name in dir(sparklog) if name[0] != "_"}
    assert shown == {*sparklog.__all__, "groups"}
    assert all(getattr(sparklog, name) for name in shown)


def test_patterns_are_known_to_the_oldest_python():
    """Possessive quantifiers and atomic groups came with Python 3.11."""
    new = re.compile(r"[\])}][*+?][+]|\(\?>")
    found = {str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*") if path.suffix in {".py", ".json"} and new.search(path.read_text())}
    assert found == set()
