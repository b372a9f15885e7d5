"""Results of searches that still have to read from a snapshot."""

from plone.pgcatalog.database.errors import HistoryChanged
from typing import Any
from weakref import WeakSet

import logging


logger = logging.getLogger(__name__)


class OpenResults(WeakSet[Any]):
    """The results and streams of one ZODB connection that are not completely read."""

    def materialize(self, ending: bool = False) -> HistoryChanged | None:
        """Make each result read the rows that it still needs, and forget it, before the pending rows change.

        The same before the snapshot ends, with *ending*.  A result that cannot be read raises its error when it is used.
        Returns the HistoryChanged among these errors, None if there is none.
        """
        changed = None
        for results in list(self):
            try:
                results.materialize(ending)
            except Exception as error:  # noqa: BLE001  of any kind: the result may never be used
                logger.warning(
                    "the result of a search was not read before the catalog changed or the transaction ended: %r", error
                )
                results.fail(error)
                changed = error if isinstance(error, HistoryChanged) else changed
        self.clear()
        return changed
