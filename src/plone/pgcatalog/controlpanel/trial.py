"""A search on a site with settings that are not saved, for the control panel Search Tuning in Classic UI and Volto."""

from collections.abc import Mapping
from dataclasses import dataclass
from plone.pgcatalog.controlpanel.tuning_import import Finding
from plone.pgcatalog.controlpanel.tuning_import import findings_in
from plone.pgcatalog.discovery.preview import preview
from plone.pgcatalog.discovery.preview import PreviewHit
from plone.pgcatalog.discovery.replay import frequent_searches
from plone.pgcatalog.discovery.replay import Replay
from plone.pgcatalog.discovery.replay import replay
from plone.pgcatalog.discovery.replay import visitors_query
from plone.pgcatalog.fulltext.site import midnight
from plone.pgcatalog.fulltext.tuning import Pin
from plone.pgcatalog.fulltext.tuning import READERS
from plone.pgcatalog.fulltext.tuning import Tuning
from plone.pgcatalog.fulltext.tuning import tuning_in
from plone.pgcatalog.indexing.objects import site_path
from plone.pgcatalog.query.nearest import AS_SITE
from plone.pgcatalog.query.nearest import HYBRID
from plone.pgcatalog.query.nearest import RANK
from plone.pgcatalog.query.nearest import SECTION
from plone.pgcatalog.settings import search_by_meaning
from plone.pgcatalog.settings import site_settings
from plone.pgcatalog.settings import TIME_ZONE
from typing import Any


#: Most characters of a text that is tried, and most findings that are returned.
LONGEST, MOST_FINDINGS = 1000, 50
#: Smallest share, in percent, that is shown.
LEAST_PERCENT = 1


@dataclass(frozen=True)
class Trial:
    """The *settings* to try on *site*, name -> value; missing ones have the values of the site.  The catalog is this package's."""

    site: Any
    request: Any
    settings: Mapping[str, Any]

    @property
    def _tool(self) -> Any:
        return self.site.portal_catalog

    @property
    def _tuning(self) -> Tuning:
        return tuning_in({**site_settings(self._tool), **self.settings}) or Tuning()

    @property
    def sections(self) -> list[str]:
        """The sections for which there are pins, as paths in the site."""
        return sorted({pin.section for pin in self._tuning.pins if pin.section})

    def hits(self, text: str, section: str = "") -> list[PreviewHit]:
        """Return the first hits of a search for *text* in *section*, one of ``sections``; "" is the whole site."""
        tool = self._tool
        query = visitors_query(self.site, self.request, text[:LONGEST])
        if section in self.sections and AS_SITE in query and SECTION not in tool._core.indexes:
            query[SECTION] = (site_path(tool) or "") + section
        if self.settings.get(search_by_meaning.name, search_by_meaning(tool)) and RANK not in tool._core.indexes:
            # Pages near to the question follow the hits.
            query[RANK] = HYBRID
        return preview(tool, query, self.settings)

    def replay(self) -> Replay:
        """Return the replay of the most frequent searches of the site."""
        return replay(self.site, self.request, frequent_searches(self._tool), self.settings)

    def idle_pins(self) -> list[tuple[Pin, bool]]:
        """Return (pin, whether it has ended) for each pin that does not apply today."""
        day = midnight(site_settings(self._tool).get(TIME_ZONE) or "UTC").date()
        pins = self._tuning.pins
        return [(pin, pin.has_ended(day)) for pin in pins if pin.has_ended(day) or not pin.has_begun(day)]

    def findings(self) -> list[Finding]:
        """Return the findings about lines of the settings that have no effect, MOST_FINDINGS at most."""
        lines = [
            (number, name, line.strip())
            for name in READERS
            for number, line in enumerate((self.settings.get(name) or "").split("\n"), 1)
            if line.strip()
        ]
        return findings_in(self._tool, lines)[:MOST_FINDINGS]


def percents(hit: PreviewHit) -> list[tuple[str, int]]:
    """Return (part of the page, its share of the relevance in percent), the largest share first."""
    shares = [(name, round(100 * share)) for name, share in sorted(hit.shares.items(), key=lambda share: -share[1])]
    return [(name, percent) for name, percent in shares if percent >= LEAST_PERCENT]
