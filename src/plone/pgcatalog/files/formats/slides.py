"""PowerPoint: the slides in their order, each with its notes, comments, charts and drawings, and a form feed."""

from plone.pgcatalog.files.formats.markup import local
from plone.pgcatalog.files.formats.package import OFFICE
from plone.pgcatalog.files.formats.package import Package
from plone.pgcatalog.files.formats.package import STORIES
from plone.pgcatalog.files.formats.parts import Parts
from plone.pgcatalog.files.formats.parts import Unreadable
from plone.pgcatalog.files.formats.word import embedded


def read(path: str, name: str, parts: Parts) -> str:
    """Return the text of the presentation at *path*.  Raises Unreadable."""
    package = Package(path, parts)
    main = package.main()
    targets = {related.id: related.name for related in package.related(main)}
    ids = [value for element in package.tree(main).iter() for value in slide_ids(element)]
    slides = [slide(package, targets[number]) for number in ids if number in targets]
    if ids and not slides:
        raise Unreadable("a presentation without its slides")
    return "\n".join(["\n\f".join(slides), *package.properties("docProps/core.xml")])


def slide_ids(element: object) -> list[str]:
    """Return the id of the relationship of a slide in the list of slides; empty for other elements."""
    if local(str(element.tag)) != "sldId":  # type: ignore[attr-defined]
        return []
    # Two attributes are named id: that of the slide has no namespace.
    return [value for key, value in element.attrib.items() if local(key) == "id" and key != "id"]  # type: ignore[attr-defined]


def slide(package: Package, name: str) -> str:
    """Return the text of the slide in the part *name*; it adds to the errors if it cannot be read."""
    texts = package.text_of([name], OFFICE)
    try:
        texts += package.text_of([part.name for part in package.related(name) if part.kind in STORIES], OFFICE)
        texts += embedded(package, name)
    except Unreadable as error:
        package.parts.errors.append(str(error))
    return "\n".join(texts)
