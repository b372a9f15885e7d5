"""``python -m scripts.topology NAME``: start a whole topology on this machine, and count what it asks its servers."""

from importlib import import_module

import sys


NAMES = ("standby",)

if __name__ == "__main__":
    if sys.argv[1:2] == [] or sys.argv[1] not in NAMES:
        sys.exit(f"usage: make topology T={'|'.join(NAMES)}")
    import_module(f"scripts.topology.{sys.argv[1]}").main()
