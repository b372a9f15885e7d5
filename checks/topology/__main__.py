"""Starts a topology on this machine and prints the measurements: ``python -m checks.topology NAME``.

Each is a module beside this one with a command ``main``.
"""

from importlib import import_module
from pathlib import Path

import sys


NAMES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if "def main(" in path.read_text("utf-8"))


def run() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.exit(f"usage: make topology T={'|'.join(NAMES)}")
    import_module(f"checks.topology.{sys.argv[1]}").main(args=sys.argv[2:], prog_name=f"make topology T={sys.argv[1]}")


if __name__ == "__main__":
    run()
