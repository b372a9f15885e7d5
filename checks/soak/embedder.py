"""An embedder that costs no time, ``python -m checks.soak.embedder PORT``: texts with the same letters have the same vector.

A real model would take most of the processors, and the queue would be as long as the processors are slow.
"""

from functools import partial
from tests.integration.embedders import serving
from tests.integration.embedders import vectors

import signal
import sys


#: A number for each letter.
DIMENSION = 26

if __name__ == "__main__":
    with serving(partial(vectors, dimension=DIMENSION), int(sys.argv[1])):
        signal.pause()
