"""The counted searches as a file for spreadsheets."""

from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.observe.search_lists import by_week_statement
from plone.pgcatalog.observe.searches import days_of
from Products.Five.browser import BrowserView

import csv
import io


#: The first row of the file.
COLUMNS = ("week", "words", "searches", "without_results", "corrected", "correction")
#: Spreadsheets take a cell that begins with one of these characters for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


class SearchesCSV(BrowserView):
    """The searches of each week as CSV in UTF-8; empty if the catalog is not this package's."""

    def __call__(self) -> bytes:
        tool = self.context.portal_catalog
        rows = []
        if IPGCatalogTool.providedBy(tool):
            catalog = tool._core
            rows = catalog.view().fetch(lambda _: by_week_statement(catalog.zoid, days_of(tool))).value()
        response = self.request.response
        response.setHeader("Content-Type", "text/csv; charset=utf-8")
        response.setHeader("Content-Disposition", 'attachment; filename="searches.csv"')
        response.setHeader("X-Content-Type-Options", "nosniff")
        response.setHeader("Cache-Control", "private, no-store")
        file = io.StringIO()
        csv.writer(file).writerows([COLUMNS, *([cell(value) for value in row] for row in rows)])
        # With a byte order mark, which spreadsheets need to read UTF-8.
        return file.getvalue().encode("utf-8-sig")


def cell(value: object) -> object:
    """Return *value* as a cell that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
