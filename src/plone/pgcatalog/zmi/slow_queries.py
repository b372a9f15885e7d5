"""The tab *Slow Queries*: what took long, by shape; examples, and how PostgreSQL runs them."""

from plone.pgcatalog.advice.explain import explain_example
from plone.pgcatalog.advice.explain import Plan
from plone.pgcatalog.advice.replay import ReplayError
from plone.pgcatalog.i18n import _
from plone.pgcatalog.indexing.codec import CodecError
from plone.pgcatalog.observe import log
from plone.pgcatalog.observe.log import Example
from plone.pgcatalog.observe.log import Group
from plone.pgcatalog.observe.record import recall
from plone.pgcatalog.settings import slow_query_mask
from plone.pgcatalog.settings import slow_query_ms
from plone.pgcatalog.storage import dsn_of
from plone.pgcatalog.zmi.page import ManagePage
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from typing import Any

import json


class SlowQueriesPage(ManagePage):
    """Shows the log; POST with ``explain``, the number of a query, shows its plan, with ``clear`` empties the log."""

    template = ViewPageTemplateFile("templates/slow_queries.pt")
    name = "manage_slow_queries"

    example: Example | None = None
    plan: Plan | None = None
    problem = ""

    def post(self) -> Any:
        form = self.request.form
        if "clear" in form:
            count = log.clear(dsn_of(self.catalog.jar), self.catalog.zoid)
            return self.redirect(_("${count} slow queries deleted.", mapping={"count": str(count)}))
        if "explain" in form:
            self.example = self.find(form["explain"])
            self.explain()
        return self.template()

    def explain(self) -> None:
        if self.example is None:
            self.problem = _("This query is not in the log any more.")
            return
        try:
            self.plan = explain_example(self.catalog, self.example)
        except ReplayError as error:
            self.problem = _("Not explained: ${reason}.", mapping={"reason": str(error)})

    def find(self, id: Any) -> Example | None:
        """Return the recorded query number *id*, whatever came in a form."""
        return self.log.example(int(id)) if isinstance(id, str) and id.isascii() and id.isdecimal() else None

    # -- for the template

    @property
    def log(self) -> log.SlowQueryLog:
        return log.log_of(self.catalog)

    def groups(self) -> list[Group]:
        return self.log.groups()

    def examples(self) -> list[Example]:
        """Return the newest queries: of the shape of the group that the form names by its newest query, or of all."""
        chosen = self.find(self.request.form.get("like", ""))
        return self.log.examples(chosen.shape, chosen.operation) if chosen else self.log.examples()

    def threshold(self) -> str:
        """Return from when on a query is slow, for people to read."""
        ms = slow_query_ms(self.catalog.tool)
        return f"{ms:g} ms" if ms else ""

    def without(self, names: Any) -> str:
        """Return that the values of the indexes *names* were left out, for people to read."""
        text: str = _("without values of ${names}", mapping={"names": self.listed(names)})
        return text

    def masked(self) -> str:
        return ", ".join(sorted(slow_query_mask(self.catalog.tool)))

    def query_text(self, example: Example) -> str:
        """Return the query as code would write it."""
        try:
            query, sort, limit = recall(example.query)
        except CodecError:
            return json.dumps(example.query, ensure_ascii=False, sort_keys=True)
        if sort:
            query["sort_on"] = [name for name, _ in sort]
            query["sort_order"] = ["descending" if reverse else "ascending" for _, reverse in sort]
        if limit is not None:
            query["sort_limit"] = limit
        return repr(query)

    def values_text(self, plan: Plan) -> str:
        return ", ".join(f"{value!r:.200}" for value in plan.values)
