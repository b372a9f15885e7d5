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
PICTURES = (
    *("search-tuned", "search-tuning", "live-search", "facets-rest", "did-you-mean"),
    *("overview", "slow-queries", "explain", "advice", "applied", "catalog", "information", "indexes", "advanced"),
    "settings",
)
COLOURS = 128
#: What is further down on a page is cut off.
HEIGHT = {
    "search-tuned": 5000,
    "search-tuning": 5000,
    "did-you-mean": 5000,
    "slow-queries": 740,
    "settings": 1150,
    "catalog": 530,
}
LOWEST = 950


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-q", TEST, f"--basetemp={folder}/shots"]
        subprocess.run(command, cwd=ROOT, check=True)
        FOLDER.mkdir(exist_ok=True)
        for name in PICTURES:
            # pytest links to the latest folder under a second name.
            [taken] = {path.resolve() for path in Path(folder).glob(f"shots/*/{name}.png")}
            picture = Image.open(taken).convert("RGB")
            picture = picture.crop((0, 0, picture.width, min(picture.height, HEIGHT.get(name, LOWEST))))
            picture = picture.quantize(COLOURS, dither=Image.Dither.NONE)
            picture.save(FOLDER / taken.name, optimize=True)


if __name__ == "__main__":
    main()
