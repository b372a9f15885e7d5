"""The page of the documentation that shows a comparison."""

from importlib.metadata import version
from pathlib import Path
from tests.acceptance.plone_suites.compare import SuiteComparison
from tests.acceptance.plone_suites.compare import table
from tests.acceptance.plone_suites.compare import telling_line
from tests.acceptance.plone_suites.driver import select
from tests.acceptance.plone_suites.job import BAD
from typing import Any

import json
import re


#: Where packages are installed on the machine of a run.
INSTALLED = re.compile(r"/\S*/site-packages/")
ADDONS_FILE = Path(__file__).with_name("addons.txt")
SDISTS_FILE = Path(__file__).with_name("sdists.txt")
LEFT_OUT_FILE = Path(__file__).with_name("left_out.json")


def load_left_out(path: Path = LEFT_OUT_FILE) -> dict[str, str]:
    """Return what of Plone's tests is not run -> why."""
    reasons: dict[str, str] = json.loads(path.read_text("utf-8"))
    return reasons


def page(comparisons: list[SuiteComparison], candidate: dict[str, Any], command: str) -> str:
    """Return the Markdown page about *comparisons* that *command* makes."""
    of_addons = {suite.name for suite in comparisons} <= set(select(["addons"]))
    lines = [
        "# Add-ons' test suites: the figures" if of_addons else "# Plone's own test suites: the figures",
        "",
        "Made by this command; changes by hand are lost:",
        "",
        "```sh",
        command,
        "```",
        "",
        f"The test suites that {'add-ons ship' if of_addons else "Plone's packages ship in their wheels"}, unchanged, on "
        "zodb-pgjsonb: the *control* with",
        "Plone's standard ZCatalog, the *candidate* with our profile. *Only candidate* counts the tests that",
        "pass with ZCatalog and not with us, *bound* those that are excused (below). How to run them:",
        "[Run Plone's test suites](../how-to/plone-suites.md)."
        + (
            " Those of Plone: [Plone's suites](plone-suites.md)."
            if of_addons
            else " Those of add-ons: [Suites of add-ons](add-on-suites.md)."
        ),
        "",
        ", ".join(f"{name} {version}" for name, version in sorted(candidate["versions"].items())) + ".",
        *(["", f"Installed for the add-ons: {', '.join(addons())}."] if of_addons else []),
        *(["", f"Tests of source distributions, run by pytest: {', '.join(sdists())}."] if of_addons else []),
        *(_elsewhere(comparisons) if of_addons else []),
        "",
        *table(comparisons),
    ]
    lines += _section(
        "Tests bound to ZCatalog",
        "They pass with ZCatalog and fail with us: most ask for its own classes, some for what is a deliberate deviation.",
        {test: why for suite in comparisons for test, why in suite.bound.items()},
    )
    lines += _section(
        "Tests that fail with ZCatalog too",
        "Their cause is below the catalog, or in the test.",
        {test: why for suite in comparisons for test, why in _control_failures(suite).items()},
    )
    lines += _section("What is not run", "", load_left_out())
    against = {test: "" for suite in comparisons for test in (*suite.regressions, *suite.unknown, *suite.lost)}
    lines += _section("Tests that count against us", "", against)
    return "\n".join(lines) + "\n"


def addons(path: Path = ADDONS_FILE) -> list[str]:
    """Return the names and versions of the packages that the tier of add-ons has besides."""
    return [line.replace("==", " ") for line in path.read_text("utf-8").splitlines() if "==" in line]


def sdists(path: Path = SDISTS_FILE) -> list[str]:
    """Return the names and installed versions of the packages whose tests are in their source distributions."""
    names = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    return [f"{name} {version(name)}" for name in names]


def _elsewhere(comparisons: list[SuiteComparison]) -> list[str]:
    """Return paragraphs about the suites of the tier that are on the page about Plone's own, and about times."""
    missing = sorted(set(select(["addons"])) - {suite.name for suite in comparisons})
    return [
        *(["", f"On the page about Plone's own: {', '.join(missing)}."] if missing else []),
        "",
        "Controls are stored, and were run at another time: the times of both are not compared.",
    ]


def _control_failures(suite: SuiteComparison) -> dict[str, str]:
    ours = suite.candidate["tests"]
    failed = [i for i, test in sorted(suite.control["tests"].items()) if test["status"] in BAD]
    return {
        i: telling_line(ours[i].get("err", "")) or f"{ours[i]['status']} with ours" if i in ours else "" for i in failed
    }


def _section(title: str, text: str, items: dict[str, str]) -> list[str]:
    if not items:
        return []
    lines = ["", f"## {title}", "", *([text, ""] if text else [])]
    return lines + [f"- `{item}`: {_plain(why)}" if why else f"- `{item}`" for item, why in items.items()]


def _plain(text: str) -> str:
    """Return *text* without the folder of this installation, and so that Markdown takes no markup from it."""
    text = INSTALLED.sub("", text)
    for character in "\\`*_<[{":
        text = text.replace(character, f"\\{character}")
    return text
