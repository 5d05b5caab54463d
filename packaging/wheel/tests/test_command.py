"""`heatsink` and `python -m heatsink` are the binary."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

COMMANDS = [[str(Path(sysconfig.get_path("scripts")) / "heatsink")], [sys.executable, "-m", "heatsink"]]


@pytest.mark.parametrize("command", COMMANDS, ids=["script", "module"])
def test_it_takes_arguments_and_gives_exit_codes(command):
    said = subprocess.run([*command, "--version"], capture_output=True, text=True)
    assert (said.returncode, said.stdout.startswith("heatsink ")) == (0, True), said
    refused = subprocess.run([*command, "serve", "--listen", "nonsense"], capture_output=True, text=True)
    assert refused.returncode == 64, refused
