"""``@pgcatalog-searches``: the counted searches, for people who may use the control panel Search Tuning.

``@pgcatalog-opened`` counts the hits that visitors open.
"""

from dataclasses import asdict
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.observe.search_lists import read_searches
from plone.pgcatalog.observe.search_lists import SearchCount
from plone.pgcatalog.observe.search_lists import top_searches
from plone.pgcatalog.observe.search_lists import week_of
from plone.pgcatalog.observe.searches import count_opened
from plone.pgcatalog.observe.searches import days_of
from plone.pgcatalog.request import number_in
from plone.restapi.deserializer import json_body
from plone.restapi.services import Service
from Products.CMFCore.utils import getToolByName
from typing import Any
from zExceptions import BadRequest


#: Number of searches in each list: the default, and the maximum.
LIMIT, MOST = 10, 500


class SearchesGet(Service):
    """The lists of counted searches, of all weeks or of the *week* with this date; up to *limit* searches in each."""

    def reply(self) -> dict[str, Any]:
        form, tool = self.request.form, getToolByName(self.context, "portal_catalog")
        limit = number_in(str(form.get("limit", LIMIT)))
        week = week_of(form.get("week"))
        if limit is None or not 1 <= limit <= MOST:
            raise BadRequest(f"limit must be a number from 1 to {MOST}")
        if week is None and form.get("week"):
            raise BadRequest("week must be a date, such as 2026-12-31")
        rows = read_searches(tool, limit, week) if IPGCatalogTool.providedBy(tool) else None
        answer: dict[str, Any] = {
            "@id": f"{self.context.absolute_url()}/@pgcatalog-searches",
            "counted": rows is not None,
        }
        if rows is None:
            return answer
        top, missed, corrected, unopened, weeks = map(_as_json, top_searches(rows.value()))
        for each in weeks:
            each["week"] = each.pop("words")
            del each["correction"]
        lists = {"top": top, "without_results": missed, "corrected": corrected, "unopened": unopened, "weeks": weeks}
        return answer | {"days": days_of(tool), "week": str(week) if week else None, **lists}


class OpenedPost(Service):
    """Counts that a hit of the search for ``text`` was opened; it answers everyone, and only writes a number."""

    def reply(self) -> None:
        tool = getToolByName(self.context, "portal_catalog")
        if IPGCatalogTool.providedBy(tool):
            count_opened(tool._core, json_body(self.request).get("text"))
        return self.reply_no_content()  # type: ignore[no-any-return]


def _as_json(searches: list[SearchCount]) -> list[dict[str, Any]]:
    return [asdict(search) for search in searches]
