"""Collection of tests by dotted names, grouped by their layer."""

from checks.plone_suites.job import Job
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple

import importlib
import pkgutil
import re
import unittest


#: Layers that need a browser or a server protocol that Plone no longer ships.
UNRUNNABLE_LAYERS = re.compile("robot|ROBOT|Selenium|FTPServer|Acceptance|ZServer:")

#: Function of the name of a module that cannot be imported, and the reason.
ImportProblem = Callable[[str, str], None]


class Test(NamedTuple):
    """A test with the id of its result."""

    id: str
    case: Any


class Group(NamedTuple):
    """The tests of one layer."""

    layer: Any
    tests: list[Test]


def collect(job: Job, report: ImportProblem) -> list[Group]:
    """Return the tests of *job*, ordered so that layers with common bases follow each other.

    A module that cannot be imported is reported and left out.
    """
    groups: dict[int, Group] = {}
    for test, layer in _with_unique_ids(_loaded(job.modules, report)):
        names = " ".join(map(layer_name, chain(layer)))
        if not UNRUNNABLE_LAYERS.search(names) and is_wanted(test.id, job):
            groups.setdefault(id(layer), Group(layer, [])).tests.append(test)
    return sorted(groups.values(), key=lambda group: [layer_name(x) for x in chain(group.layer)])


def is_wanted(test_id: str, job: Job) -> bool:
    """Return whether *job* includes the test."""
    if any(re.search(pattern, test_id) for pattern in job.exclude):
        return False
    return bool(re.search(job.only or "", test_id)) and (job.ids is None or test_id in job.ids)


def chain(layer: Any) -> list[Any]:
    """Return *layer* and all layers below it, bases first; an empty list for None."""
    if layer is None:
        return []
    bases = [base for base in getattr(layer, "__bases__", ()) if base is not object]
    layers = [item for base in bases for item in chain(base)]
    return [*dict.fromkeys(layers), layer]


def layer_name(layer: Any) -> str:
    """Return the dotted name of a layer."""
    if layer is None:
        return "(none)"
    return f"{getattr(layer, '__module__', '')}.{getattr(layer, '__name__', layer)}"


def _loaded(specs: list[str], report: ImportProblem) -> Iterator[tuple[str, Any, Any]]:
    """Yield (module name, layer, test)."""
    for name in (name for spec in specs for name in _module_names(spec)):
        try:
            module = importlib.import_module(name)
            if hasattr(module, "test_suite"):
                suite = module.test_suite()
            else:
                suite = unittest.defaultTestLoader.loadTestsFromModule(module)
        except (Exception, SystemExit) as exc:  # noqa: BLE001 - whatever a foreign module raises
            report(name, f"{type(exc).__name__}: {exc}")
            continue
        for layer, case in _leaves(suite, None):
            yield name, layer, case


def _module_names(spec: str) -> list[str]:
    """Expand ``package.pattern*``; a plain dotted name stays."""
    if "*" not in spec:
        return [spec]
    package, _dot, pattern = spec.rpartition(".")
    matches = re.compile(pattern.replace("*", ".*")).fullmatch
    path = importlib.import_module(package).__path__
    return [f"{package}.{info.name}" for info in pkgutil.iter_modules(path) if matches(info.name)]


def _leaves(suite: Any, layer: Any) -> Iterator[tuple[Any, Any]]:
    layer = getattr(suite, "layer", layer)
    if isinstance(suite, unittest.TestCase) or not hasattr(suite, "__iter__"):
        yield layer, suite
        return
    for item in suite:
        yield from _leaves(item, layer)


def _with_unique_ids(loaded: Iterator[tuple[str, Any, Any]]) -> Iterator[tuple[Test, Any]]:
    seen: dict[str, int] = {}
    for module, layer, case in loaded:
        test_id = case.id() if hasattr(case, "id") else str(case)
        if "/" in test_id:  # a doctest file: omit the folder of its installation
            test_id = test_id.split("site-packages/")[-1]
        if not test_id.startswith(module):
            test_id = f"{module}::{test_id}"
        seen[test_id] = count = seen.get(test_id, 0) + 1
        yield Test(test_id if count == 1 else f"{test_id}#{count}", case), layer
