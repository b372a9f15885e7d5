"""``@relations`` and ``@linkintegrity`` with fewer round trips: relations, objects and rows are read together."""

from Acquisition import aq_base
from collections.abc import Iterable
from itertools import islice
from plone.pgcatalog.core.references import announce_uids
from plone.pgcatalog.database.prefetch import prefetch
from plone.restapi.services.linkintegrity.get import LinkIntegrityGet
from plone.restapi.services.relations import plone_api_content_get
from plone.restapi.services.relations.get import GetRelations
from typing import Any
from zc.relation import catalog as queries
from zc.relation.interfaces import ICatalog
from ZODB.POSException import POSKeyError
from ZODB.utils import u64
from zope.component import getUtility
from zope.component import queryUtility
from zope.intid.interfaces import IIntIds


#: Maximum number of relations whose objects are loaded together.
MOST_RELATIONS = 1000
#: Parameter of the service -> column in the catalog of relations.
ENDS = {"source": "from_id", "target": "to_id"}


class RelationsGet(GetRelations):
    """``@relations``, which loads relations and the objects at both ends together."""

    def reply(self) -> Any:
        """Return plone.restapi's response."""
        query = {} if self.request.get("onlyBroken") else self._query()
        if query:
            load_relations(self.context._p_jar, query)
        return super().reply()

    def _query(self) -> dict[str, Any]:
        """Return the query for the request's *source*, *target* and *relation*; {} if they are missing or invalid."""
        intids, query = queryUtility(IIntIds), {}
        if intids is None:
            return {}
        for name, column in ENDS.items():
            end = self.request.get(name)
            if not end:
                continue
            if not isinstance(end, str):
                return {}
            obj = plone_api_content_get(**{"path" if end.startswith("/") else "UID": end})
            number = None if obj is None else intids.queryId(obj)
            if number is None:
                return {}
            query[column] = queries.any(number)
        if relation := self.request.get("relation"):
            if not isinstance(relation, str):
                return {}
            query["from_attribute"] = relation
        return query


def load_relations(jar: Any, query: dict[str, Any]) -> None:
    """Load the first MOST_RELATIONS relations of *query*, and the objects that they relate, into *jar*, a ZODB connection."""
    catalog, references = queryUtility(ICatalog), getUtility(IIntIds).refs
    if catalog is None:
        return

    def objects(numbers: Iterable[int | None]) -> list[Any]:
        found = (references.get(number) for number in numbers if number is not None)
        return [reference.object for reference in found if reference is not None]

    relations = objects(islice(catalog.findRelationTokens(query), MOST_RELATIONS))
    prefetch(jar, zoids(relations))
    # Not by from_object and to_object, which traverse the path of each object.
    ends = objects({number: None for each in relations for number in (each.to_id, getattr(each, "_from_id", None))})
    prefetch(jar, zoids(ends))
    # A summary contains the workflow state.
    prefetch(jar, zoids(map(workflow_history, ends)))


def workflow_history(obj: Any) -> Any:
    """Return the workflow history of *obj*; None if it has none, or if it is lost, which its reader will notice."""
    try:
        return getattr(aq_base(obj), "workflow_history", None)
    except POSKeyError:
        return None


def zoids(objects: Iterable[Any]) -> list[int]:
    """Return the distinct oids, as numbers, of the *objects* that are stored."""
    oids = dict.fromkeys(getattr(obj, "_p_oid", None) for obj in objects)
    return [u64(oid) for oid in oids if oid is not None]


class LinkIntegrity(LinkIntegrityGet):
    """``@linkintegrity``, which searches for all *uids* of the request at once."""

    def reply(self) -> Any:
        """Return plone.restapi's response."""
        uids = self.request.form.get("uids", [])
        announce_uids(self.context, uids if isinstance(uids, list) else [uids])
        return super().reply()
