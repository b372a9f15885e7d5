"""Services of plone.restapi for Volto's Search Tuning.

- ``@pgcatalog-preview``: a search, and the most frequent ones, with settings that are not saved
- ``@pgcatalog-searches.csv``: the counted searches as a file
"""

from plone.pgcatalog.controlpanel.configlets import readable_errors
from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSearchSettings
from plone.pgcatalog.controlpanel.searches import SearchesCSV
from plone.pgcatalog.controlpanel.trial import percents
from plone.pgcatalog.controlpanel.trial import Trial
from plone.pgcatalog.discovery.preview import PreviewHit
from plone.pgcatalog.discovery.replay import Replay
from plone.pgcatalog.i18n import translated
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.restapi.deserializer import json_body
from plone.restapi.deserializer.controlpanels import FakeDXContext
from plone.restapi.interfaces import IFieldDeserializer
from plone.restapi.services import Service
from Products.CMFCore.utils import getToolByName
from typing import Any
from zExceptions import BadRequest
from zope.component import getMultiAdapter
from zope.interface import Invalid
from zope.schema import getFields


class PreviewPost(Service):
    """Searches for ``text`` in ``section`` with the unsaved ``settings``, and compares searches if ``replay`` is true.

    It writes nothing.  Missing settings have the values of the site; BadRequest names invalid ones.
    """

    def reply(self) -> dict[str, Any]:
        data = json_body(self.request)
        answer: dict[str, Any] = {"@id": f"{self.context.absolute_url()}/@pgcatalog-preview"}
        if not IPGCatalogTool.providedBy(getToolByName(self.context, "portal_catalog")):
            return answer | {"hits": None, "sections": [], "idle_pins": [], "findings": [], "replay": None}
        text, section = (data.get(name) if isinstance(data.get(name), str) else "" for name in ("text", "section"))
        trial = Trial(self.context, self.request, self._settings(data.get("settings", {})))
        titles = {name: field.title for name, field in getFields(IPGCatalogSearchSettings).items()}
        words = " ".join(text.split())
        return answer | {
            "hits": [_hit(hit) for hit in trial.hits(words, section)] if words else None,
            "sections": trial.sections,
            "idle_pins": [
                {"words": pin.words, "target": pin.target, "ended": _day(pin.last if has_ended else None)}
                | {"begins": _day(None if has_ended else pin.first)}
                for pin, has_ended in trial.idle_pins()
            ],
            "findings": [
                {
                    "field": finding.setting,
                    "title": translated(titles[finding.setting], self.request),
                    "line": finding.line,
                    "message": translated(finding.message, self.request),
                }
                for finding in trial.findings()
            ],
            "replay": _replay(trial.replay()) if data.get("replay") is True else None,
        }

    def _settings(self, data: Any) -> dict[str, Any]:
        """Return the settings in *data*, as plone.restapi saves them.  Raises BadRequest for those that are invalid."""
        if not isinstance(data, dict):
            raise BadRequest("settings must be an object")
        values, errors = {}, []
        for name, field in getFields(IPGCatalogSearchSettings).items():
            if name in data:
                try:
                    adapters = field, FakeDXContext(), self.request
                    values[name] = getMultiAdapter(adapters, IFieldDeserializer)(data[name])
                    field.validate(values[name])
                except (ValueError, Invalid) as error:
                    message = error.doc() if hasattr(error, "doc") else str(error)
                    errors.append(
                        {"field": name, "message": translated(message, self.request), "error": "ValidationError"}
                    )
        if errors:
            raise BadRequest(readable_errors(errors))
        return values


class SearchesFileGet(Service):
    """The file of the counted searches; Volto's front-end reaches services only."""

    def render(self) -> bytes:
        """See Service."""
        self.check_permission()
        return SearchesCSV(self.context, self.request)()


def _day(day: Any) -> str | None:
    return None if day is None else str(day)


def _hit(hit: PreviewHit) -> dict[str, Any]:
    brain = hit.brain
    return {
        "@id": brain.getURL(),
        "@type": brain.portal_type,
        "UID": brain.UID,
        "title": brain.Title or brain.getId,
        "place": hit.place,
        "place_before": hit.place_before,
        "is_pinned": hit.is_pinned,
        "boost": hit.boost,
        "half_life": hit.half_life,
        "shares": [{"part": part, "percent": percent} for part, percent in percents(hit)],
        "by_words": hit.by_words,
        "by_meaning": hit.by_meaning,
        "similarity": hit.similarity,
    }


def _replay(replay: Replay) -> dict[str, Any]:
    changed = [
        {
            "words": search.counted.words,
            "searches": search.counted.searches,
            "has_other_first": search.has_other_first,
            "total_before": search.before.total,
            "total": search.after.total,
        }
        for search in replay.changed
    ]
    return {**replay.figures(), "left": replay.left, "changed": changed}
