"""Builds ``llms.txt``, an overview of the documentation for assistants, in the format of https://llmstxt.org.

The docs build writes it beside the pages (``docs/conf.py``); each line is a page's title and its first sentence.
"""

from collections.abc import Iterator
from pathlib import Path

import re
import tomllib


ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SECTIONS = {"tutorial": "Tutorials", "how-to": "How-to guides", "reference": "Reference", "explanation": "Explanation"}
#: The beginning of a paragraph that is not a sentence.
MARKUP = re.compile(r"^(```|\||!\[|#|<!--|- |\d+\. |\()")


def pages(section: str) -> Iterator[Path]:
    return (path for path in sorted((DOCS / section).glob("*.md")) if path.name != "index.md")


def summary(text: str) -> tuple[str, str]:
    """Return the title of a page, and the first sentence of its text."""
    title = next(line for line in text.splitlines() if line.startswith("# ")).removeprefix("# ")
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    prose = [part for part in text.split("\n\n")[1:] if part.strip() and not MARKUP.match(part.strip())]
    first = " ".join(prose[0].split()) if prose else ""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", first)
    return title, re.split(r"(?<=[.:!?]) ", plain)[0]


def llms_text() -> str:
    """Return the text of ``llms.txt``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [f"# {project['name']}", "", f"> {project['description']}", ""]
    for section, title in SECTIONS.items():
        lines += [f"## {title}", ""]
        for path in pages(section):
            name, about = summary(path.read_text("utf-8"))
            lines.append(f"- [{name}]({path.relative_to(DOCS).with_suffix('.html').as_posix()}): {about}")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(llms_text(), end="")
