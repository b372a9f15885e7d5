"""Which distribution this package belongs to, and whether files of another one are mixed with its own.

Another project's distribution has the same import name.  Installed into the same environment, it overwrites modules of
this one, or this one of it, and neither pip nor Python says so.
"""

from collections.abc import Iterable
from functools import cache
from importlib.metadata import Distribution
from importlib.metadata import distributions
from importlib.metadata import entry_points
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version
from pathlib import Path

import sys


#: The folder that a distribution with this import name installs.
PACKAGE = ("plone", "pgcatalog")
#: The name under which the other project is published.
OTHER = "plone.pgcatalog"
#: An entry point that this project's distribution declares, whatever its name is: it tells it from others.
MARK = ("paste.filter_factory", "unavailable", "plone.pgcatalog.unavailable:make_filter")


class MixedDistributions(RuntimeError):
    """Files of another distribution are mixed with those of plone.pgcatalog."""


def own_distribution() -> Distribution | None:
    """Return the distribution of this project in the environment; None for a bare checkout on the path."""
    group, name, value = MARK
    for entry_point in entry_points(group=group, name=name):
        if entry_point.value == value and entry_point.dist is not None:
            return entry_point.dist
    return None


def version_of(name: str) -> str | None:
    """Return the version of the distribution *name*; None when it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def others(path: list[str] | None = None) -> list[str]:
    """Return name and version of distributions of that name on *path*, ``sys.path`` by default, that are not this project's."""
    found = distributions(name=OTHER, path=sys.path if path is None else path)
    return sorted({f"{d.metadata['Name']} {d.version}" for d in found if not is_own(d) and installs_package(d)})


def is_own(distribution: Distribution) -> bool:
    """True for a release of this project, whatever its name is."""
    return any((e.group, e.name, e.value) == MARK for e in distribution.entry_points)


def installs_package(distribution: Distribution) -> bool:
    """True when *distribution* has files in the folder of this package."""
    record = distribution.read_text("RECORD") or ""
    folder = "/".join(PACKAGE)
    return any(line.startswith(f"{folder}/") for line in record.splitlines())


def foreign_modules(package: Path, recorded: Iterable[str]) -> list[str]:
    """Return the modules in the folder *package* that are not among the *recorded* paths of its distribution."""
    root = package.parents[len(PACKAGE) - 1]
    here = {path.relative_to(root).as_posix() for path in package.rglob("*.py")}
    return sorted(here - set(recorded))


@cache
def mixture() -> str | None:
    """Return a sentence about what is mixed in, with what to do; None when nothing is."""
    strangers = others()
    if strangers:
        return (
            f"The distribution {', '.join(strangers)} has the same import name, plone.pgcatalog, and is another project."
            f" {REMEDY}"
        )
    own = own_distribution()
    files = [] if own is None else [file.as_posix() for file in own.files or ()]
    package = Path(__file__).parent
    # An editable installation records none of the package's files.
    if any(file.startswith("/".join(PACKAGE) + "/") for file in files):
        foreign = foreign_modules(package, files)
        if foreign:
            return f"{len(foreign)} modules in {package} are of another release or project: {foreign[0]}. {REMEDY}"
    return None


REMEDY = "Uninstall both with pip, and install this one again."


def refuse_mixture() -> None:
    """Raise MixedDistributions, before anything is read or written, when files of another distribution are mixed in."""
    sentence = mixture()
    if sentence is not None:
        raise MixedDistributions(sentence)
