"""The embedded store, for stories of the tests."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager


@contextmanager
def store(folder, *flags, environment=None):
    """Gives its endpoint. Its log, with every request, is `store.log` in the folder."""
    command = [os.environ["HEATSINK_BIN"], "serve", "--listen", "127.0.0.1:0", "--output", "json", "--log-format", "json", "--access-log", *flags]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder), "HEATSINK_LAME_DUCK": "0", **(environment or {})}
    with open(folder / "store.log", "wb") as log:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment, cwd=folder)
    try:
        yield json.loads(server.stdout.readline())["endpoint"]
    finally:
        server.terminate()
        server.wait(60)


def story(folder, endpoint, *flags):
    """Starts the command, without its wrapper."""
    command = [sys.executable, "-m", "story", "--binary", os.environ["HEATSINK_BIN"], "--endpoint", endpoint, "--report", str(folder / "report"), *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
