"""Finds the distribution that this package belongs to, and other distributions with files in its folder.

Another project's distribution has the same import name.  Installed into the same environment, one of them overwrites
modules of the other, without a message from pip or Python.
"""

from functools import cache
from importlib.metadata import Distribution
from importlib.metadata import distributions
from importlib.metadata import entry_points
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version


#: Name under which the other project is published.
OTHER_PROJECT = "plone.pgcatalog"
#: Entry point that only this project's distribution declares, whatever its name: it distinguishes this one from others.
OWN_ENTRY_POINT = ("paste.filter_factory", "unavailable", "plone.pgcatalog.unavailable:make_filter")


class MixedDistributions(RuntimeError):
    """Files of another distribution are mixed with those of plone.pgcatalog."""


def own_distribution() -> Distribution | None:
    """Return the distribution of this project in the environment; None for a plain checkout on the path."""
    group, name, value = OWN_ENTRY_POINT
    for entry_point in entry_points(group=group, name=name):
        if entry_point.value == value and entry_point.dist is not None:
            return entry_point.dist
    return None


def version_of(name: str) -> str | None:
    """Return the version of the distribution *name*; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def numbers_of(version: str) -> tuple[int, ...]:
    """Return the first two numbers of *version*: (0, 8) for 0.8.1."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


@cache
def mixture() -> str | None:
    """Return a message that names other distributions with files in this package's folder, and the remedy, or None."""
    others = set()
    for distribution in distributions(name=OTHER_PROJECT):
        is_own = any((point.group, point.name, point.value) == OWN_ENTRY_POINT for point in distribution.entry_points)
        if not is_own and "plone/pgcatalog/" in (distribution.read_text("RECORD") or ""):
            others.add(f"{distribution.metadata['Name']} {distribution.version}")
    if not others:
        return None
    return (
        f"The distribution {', '.join(sorted(others))} has the same import name, plone.pgcatalog, and is another project."
        " Uninstall both with pip, and install this one again."
    )


def refuse_mixture() -> None:
    """Raise MixedDistributions, before anything is read or written, if another distribution is mixed in."""
    sentence = mixture()
    if sentence is not None:
        raise MixedDistributions(sentence)
