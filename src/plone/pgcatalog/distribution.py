"""Which distribution this package belongs to, and whether another one has put files into its folder.

Another project's distribution has the same import name.  Installed into the same environment, it overwrites modules of
this one, or this one of it, and neither pip nor Python says so.
"""

from functools import cache
from importlib.metadata import Distribution
from importlib.metadata import distributions
from importlib.metadata import entry_points
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version


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


@cache
def mixture() -> str | None:
    """Return a sentence about other distributions with files in this package's folder, with what to do; None without."""
    others = set()
    for distribution in distributions(name=OTHER):
        is_own = any((point.group, point.name, point.value) == MARK for point in distribution.entry_points)
        if not is_own and "plone/pgcatalog/" in (distribution.read_text("RECORD") or ""):
            others.add(f"{distribution.metadata['Name']} {distribution.version}")
    if not others:
        return None
    return (
        f"The distribution {', '.join(sorted(others))} has the same import name, plone.pgcatalog, and is another project."
        " Uninstall both with pip, and install this one again."
    )


def refuse_mixture() -> None:
    """Raise MixedDistributions, before anything is read or written, when another distribution is mixed in."""
    sentence = mixture()
    if sentence is not None:
        raise MixedDistributions(sentence)
