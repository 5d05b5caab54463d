"""A copy of what a clone would hold: the files that git knows or would take, and nothing that lies about."""

import shutil
import subprocess
from pathlib import Path


def fresh(root, to):
    """Makes `to` hold exactly that. Times of files stay, so that a build of an earlier copy is not repeated."""
    root, to = Path(root), Path(to)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, check=True, capture_output=True)
    if to.exists():
        shutil.rmtree(to)
    for name in listed.stdout.decode().split("\0"):
        source = root / name
        if name and source.is_file():
            target = to / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    return to
