"""Takes the pictures of the documentation, ``docs/images/*.png``, from the browser tests, and records a session as text:

    .venv/bin/python scripts/take_screenshots.py
    .venv/bin/python scripts/take_screenshots.py volto

The second command takes the pictures of Volto.

The pictures are reduced to few colours: this makes the files smaller without a visible difference.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from PIL import Image

import subprocess
import sys
import tempfile


ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "images"
#: The recorded actions of a visitor and the texts of the pages.
SESSION = ROOT / "docs" / "how-to" / "typo-session.txt"
#: Picture -> the pictures that it shows side by side.
STRIPS = {"typo-finds-the-page": ("typo-1", "typo-2", "typo-3"), "words-and-meaning": ("by-words", "by-meaning")}
GAP = 24
TESTS = tuple(
    f"tests/acceptance/test_browser{name}.py" for name in ("", "_search", "_sites", "_tuning", "_files", "_meaning")
)
PICTURES = (
    *("search-tuned", "search-tuning", "live-search-words", "live-search-corrected", "facets-rest", "did-you-mean"),
    *("search-corrected", "search-facets", "search-small", "search-small-facets", "search-german", "search-sites"),
    *("tuning-preview", "tuning-preview-phone", "tuning-preview-german", "related-pages", "search-page-settings"),
    "tuning-synonym",
    *("overview", "slow-queries", "explain", "advice", "applied", "catalog", "information", "indexes", "advanced"),
    *("tuning-by-meaning", "tuning-by-meaning-german"),
    *("file-page", "files-overview", "files-failed", "files-german", "files-phone"),
    *("settings", "settings-de", "search-tuning-de", "search-page-settings-de"),
)
VOLTO_TESTS = tuple(f"checks/volto/test_{name}.py" for name in ("add_on", "panels", "tuning", "german", "search_page"))
VOLTO_PICTURES = (
    *("volto-facets", "volto-facet-picked", "volto-search", "volto-did-you-mean", "volto-pgcatalog-search-refused"),
    *("volto-facets-small", "volto-search-small", "volto-did-you-mean-small", "volto-pgcatalog-search-refused-small"),
    *("volto-search-german", "volto-facets-german-small"),
    *("volto-page", "volto-page-chosen", "volto-page-german", "volto-panel"),
    *("volto-page-small", "volto-page-drawer-small"),
    *("volto-tuning", "volto-tuning-small", "volto-tuning-german"),
)
COLOURS = 128
#: Picture -> height in pixels at which it is cut off.
HEIGHT = {
    "search-tuned": 5000,
    "search-tuning": 5000,
    "did-you-mean": 5000,
    "slow-queries": 740,
    "settings": 5000,
    "settings-de": 5000,
    "search-tuning-de": 5000,
    "catalog": 530,
    "volto-did-you-mean": 330,
    "volto-pgcatalog-search-refused": 1250,
    "volto-tuning": 1900,
    "volto-tuning-small": 1900,
    "volto-tuning-german": 1250,
    "tuning-preview": 1300,
    "tuning-synonym": 1500,
    "tuning-preview-german": 1300,
    "tuning-preview-phone": 1900,
    "file-page": 620,
    "files-overview": 1000,
    "files-failed": 400,
    "files-phone": 1450,
    "advanced": 1100,
}
LOWEST = 950


def main() -> None:
    if sys.argv[1:] == ["volto"]:
        with pictures_of(VOLTO_TESTS, VOLTO_PICTURES):
            return
    with pictures_of(TESTS, PICTURES) as pictures:
        for name, parts in STRIPS.items():
            save(strip([Image.open(pictures[f"{part}.png"]).convert("RGB") for part in parts]), name)
        SESSION.write_bytes(pictures[SESSION.name].read_bytes())


@contextmanager
def pictures_of(tests: tuple[str, ...], names: tuple[str, ...]) -> Iterator[dict[str, Path]]:
    """Run *tests*, save their pictures *names*, and yield all files that they have written, by name."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", *tests, f"--basetemp={folder}/shots"]
        subprocess.run(command, cwd=ROOT, check=True)
        FOLDER.mkdir(exist_ok=True)
        pictures = {path.name: path for path in sorted(Path(folder).glob("shots/*/*")) if path.is_file()}
        for name in names:
            picture = Image.open(pictures[f"{name}.png"]).convert("RGB")
            save(picture.crop((0, 0, picture.width, min(picture.height, HEIGHT.get(name, LOWEST)))), name)
        yield pictures


def strip(pictures: list[Image.Image]) -> Image.Image:
    """Return *pictures*, all of the same height, side by side."""
    width = sum(picture.width for picture in pictures) + GAP * (len(pictures) - 1)
    found = Image.new("RGB", (width, pictures[0].height), "#dddddd")
    left = 0
    for picture in pictures:
        found.paste(picture, (left, 0))
        left += picture.width + GAP
    return found


def save(picture: Image.Image, name: str) -> None:
    """Save *picture* under *name*, with few colours."""
    few = picture.quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
