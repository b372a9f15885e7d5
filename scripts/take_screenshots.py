"""Takes the pictures of the documentation, ``docs/images/*.png``, out of the browser tests:

    .venv/bin/python scripts/take_screenshots.py

They are reduced to few colours, which a reader does not see and the repository does.
"""

from pathlib import Path
from PIL import Image

import subprocess
import sys
import tempfile


ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "images"
TEST = "tests/acceptance/test_browser.py"
PICTURES = ("search-tuned", "search-tuning", "live-search", "facets-rest", "did-you-mean")
COLOURS = 64


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-q", TEST, "-k", "search", f"--basetemp={folder}/shots"]
        subprocess.run(command, cwd=ROOT, check=True)
        FOLDER.mkdir(exist_ok=True)
        for name in PICTURES:
            # pytest links to the latest folder under a second name.
            [taken] = {path.resolve() for path in Path(folder).glob(f"shots/*/{name}.png")}
            picture = Image.open(taken).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
            picture.save(FOLDER / taken.name, optimize=True)


if __name__ == "__main__":
    main()
