"""The project of Volto in ``frontend``: the version named in the guide, and an add-on without requirements."""

from tests.unit.sources import ROOT
from tests.unit.sources import text

import json
import re


FRONTEND = ROOT / "frontend"


def test_guide_names_the_version_that_is_built() -> None:
    built = json.loads(text(FRONTEND / "package.json"))["dependencies"]["@plone/volto"]
    assert set(re.findall(r"Volto (\d[\d.]*\d)", text(ROOT / "docs/how-to/volto.md"))) == {built}


def test_add_on_requires_only_volto_itself() -> None:
    """Pnpm installs another Volto for an add-on that names Volto as its peer."""
    package = json.loads(text(FRONTEND / "packages/volto-pgcatalog/package.json"))
    assert [name for name in package if "ependencies" in name] == []
