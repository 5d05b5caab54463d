"""`python -m heatsink ...` is `heatsink ...`."""

import os
import sys

from heatsink.binary import MissingBinary, find


def main() -> None:
    try:
        program = find()
    except MissingBinary as missing:
        raise SystemExit(f"heatsink: {missing}") from None
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
