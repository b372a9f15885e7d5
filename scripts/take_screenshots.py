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
TESTS = tuple(f"tests/acceptance/{name}.py" for name in ("test_browser", "test_browser_search", "test_browser_tuning"))
PICTURES = (
    *("search-tuned", "search-tuning", "live-search-words", "live-search-corrected", "facets-rest", "did-you-mean"),
    *("search-corrected", "search-facets", "search-small", "search-small-facets", "search-german"),
    *("tuning-preview", "tuning-preview-phone", "tuning-preview-german", "related-pages", "search-page-settings"),
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
    "tuning-preview": 1300,
    "tuning-preview-german": 1300,
    "tuning-preview-phone": 1900,
}
LOWEST = 950


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", *TESTS, f"--basetemp={folder}/shots"]
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
