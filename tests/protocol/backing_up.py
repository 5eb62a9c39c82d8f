"""The commands of the guide that back up a root."""

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

_GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "backup.md"


def back_up(root: Path, copy: Path, between: Callable[[], object] = lambda: None) -> None:
    """Runs the loop of the guide for a root with one topic. `between` is called after the version files and before the data files."""
    [loop] = re.findall(r"^```bash\n(for from in .*?)^```$", _GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    linked, goes_on = copy.with_name(f"{copy.name}.linked"), copy.with_name(f"{copy.name}.goes-on")
    here = loop.replace("my-log/", f"{root}/").replace("to=backup/", f"to={copy}/")
    wait = f"[ $part = . ] || {{ touch {linked}; until [ -e {goes_on} ]; do sleep 0.05; done; }}"
    before, asks, after = here.partition('    ls "$from$part"')
    with subprocess.Popen(["bash", "-uo", "pipefail", "-c", f"{before}    {wait}\n{asks}{after}"]) as shell:
        try:
            while not linked.exists():
                assert shell.poll() is None
                time.sleep(0.05)
            between()
        finally:
            goes_on.touch()
    assert shell.returncode == 0
