"""Where the binary of this wheel lies."""

import os
import sys
import sysconfig
from pathlib import Path

NAME = "heatsink"
# Names another binary, one that was just built for example.
VARIABLE = "HEATSINK_BINARY"


class MissingBinary(RuntimeError):
    """The binary is not there, or does not run on this machine."""


def find() -> Path:
    """The path of the `heatsink` binary: that of HEATSINK_BINARY, else the one that this wheel has installed.

    It is never searched for on PATH: that could be another version.

    Raises MissingBinary where there is none.
    """
    named = os.environ.get(VARIABLE)
    if named:
        path = Path(named)
        if path.is_file():
            return path.resolve()
        raise MissingBinary(f"{VARIABLE} names {named}, which is no file")
    looked = [folder / NAME for folder in _folders()]
    for path in looked:
        if path.is_file():
            return path
    places = ", ".join(str(path) for path in looked)
    raise MissingBinary(f"the binary is at none of {places}; reinstall with `pip install --force-reinstall heatsink`")


def _folders() -> "list[Path]":
    """Where installers put scripts of a wheel, the most likely one first."""
    package = Path(__file__).resolve().parent
    user = sysconfig.get_preferred_scheme("user") if sys.version_info >= (3, 10) else f"{os.name}_user"
    folders = [
        Path(sysconfig.get_path("scripts")),
        # `pip install --prefix` and environments that others are layered on: lib/pythonX.Y/site-packages is beside bin.
        package.parents[3] / "bin" if len(package.parents) > 3 else package,
        Path(sysconfig.get_path("scripts", scheme=user)),
        # `pip install --target`
        package.parent / "bin",
    ]
    return list(dict.fromkeys(folders))
