"""The Java that this machine has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

_OLDEST = 17


def program() -> str:
    """The program that runs Java: of JAVA_HOME, or else the first on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def problem() -> str | None:
    """Why this Java cannot be used, in words; None if it is new enough."""
    home, java = os.environ.get("JAVA_HOME"), program()
    try:
        # A JVM that does not start says why on standard output.
        ran = subprocess.run([java, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return f"JAVA_HOME is {home}, but {java} cannot be run" if home else "there is none on the PATH, and JAVA_HOME is not set"
    said = ran.stdout.decode(errors="replace")
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is not None and int(version[1]) >= _OLDEST:
        return None
    found = shutil.which(java) or java
    if version is None:
        return f"{found} does not start; it says: {' | '.join(said.splitlines()).rstrip('.') or 'nothing'}"
    return f"{found} is of version {version[1]}"
