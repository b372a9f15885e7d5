"""Results of searches that still have to read from a snapshot."""

from plone.pgcatalog.database.errors import HistoryChanged
from typing import Any
from weakref import WeakSet

import logging


logger = logging.getLogger(__name__)


class OpenResults(WeakSet[Any]):
    """Results and streams of one ZODB connection that are not read to their end."""

    def materialize(self, ending: bool = False) -> HistoryChanged | None:
        """Let each read what it still needs, before the snapshot is *ending* or the pending rows change, and forget it.

        A result that cannot be read raises the error when it is used.  Returns the error of a lost history, if there is one.
        """
        changed = None
        for results in list(self):
            try:
                results.materialize(ending)
            except Exception as error:  # noqa: BLE001  of any kind: the result may never be used
                logger.warning("a search was not read before the catalog changed or the transaction ended: %r", error)
                results.fail(error)
                changed = error if isinstance(error, HistoryChanged) else changed
        self.clear()
        return changed
