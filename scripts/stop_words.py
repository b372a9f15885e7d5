"""Writes ``fulltext/stop_words.txt``: PostgreSQL's stop words of each language, made by the Snowball project.

``python scripts/stop_words.py FOLDER`` reads them from FOLDER, the ``tsearch_data`` of a server (``pg_config --sharedir``).
"""

from pathlib import Path

import sys


TARGET = Path(__file__).parents[1] / "src/plone/pgcatalog/fulltext/stop_words.txt"
#: ISO 639-1 code -> the name of the list.
LISTS = {
    **{"da": "danish", "de": "german", "en": "english", "es": "spanish", "fi": "finnish", "fr": "french"},
    **{"hu": "hungarian", "it": "italian", "nb": "norwegian", "ne": "nepali", "nl": "dutch", "nn": "norwegian"},
    **{"no": "norwegian", "pt": "portuguese", "ru": "russian", "sv": "swedish", "tr": "turkish"},
}
HEAD = "# Stop words of PostgreSQL (Snowball), a language per line.  Made by scripts/stop_words.py.\n"


def main(folder: Path) -> None:
    lines = []
    for code, name in sorted(LISTS.items()):
        words = sorted(set((folder / f"{name}.stop").read_text("utf-8").split()))
        lines.append(f"{code}: {' '.join(words)}\n")
    TARGET.write_text(HEAD + "".join(lines), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
