"""Word: a document, its headers, footers, notes and comments; tracked insertions are text, deletions are not."""

from plone.pgcatalog.files.formats.package import OFFICE
from plone.pgcatalog.files.formats.package import Package
from plone.pgcatalog.files.formats.package import STORIES
from plone.pgcatalog.files.formats.parts import Parts


#: Kinds of relationships to the parts of a document with text.
WORD_STORIES = STORIES | {"header", "footer", "footnotes", "endnotes"}
#: Kinds of relationships to files in a document.
EMBEDDED = frozenset({"package", "oleObject"})


def read(path: str, name: str, parts: Parts) -> str:
    """Return the text of the document at *path*.  Raises Unreadable."""
    package = Package(path, parts)
    main = package.main()
    texts = [package.text(main, OFFICE)]
    related = package.related(main)
    texts += package.text_of([part.name for part in related if part.kind in WORD_STORIES], OFFICE)
    texts += package.properties("docProps/core.xml")
    texts += embedded(package, main)
    return "\n".join(texts)


def embedded(package: Package, part: str) -> list[str]:
    """Return the texts of the files in the *part* of *package*."""
    names = dict.fromkeys(related.name for related in package.related(part) if related.kind in EMBEDDED)
    return [package.parts.text(name.rpartition("/")[2], "", package.open(name)) for name in names if name in package]
