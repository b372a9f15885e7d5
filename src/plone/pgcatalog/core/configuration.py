"""The configuration of a catalog tool: immutable, and computed once for each state of the tool's settings.

A configuration is a volatile attribute of the tool in one ZODB connection: it holds no object of another connection, and
is discarded together with the tool's state.
"""

from Acquisition import aq_base
from collections.abc import Container
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from plone.pgcatalog.database.layout import Layout
from plone.pgcatalog.database.prefetch import prefetch
from plone.pgcatalog.fulltext.site import site_tuning
from plone.pgcatalog.fulltext.site import SiteTuning
from plone.pgcatalog.fulltext.text_index import ZCTextIndexTranslator
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import strip_data
from plone.pgcatalog.indexes.registry import BUILT_IN
from plone.pgcatalog.indexes.registry import translator_class
from plone.pgcatalog.indexing.objects import site_path
from plone.pgcatalog.query.compiler import CompiledQueries
from plone.pgcatalog.settings import site_settings
from plone.pgcatalog.storage import unchanged_tid
from plone.pgcatalog.storage import unsaved_oids
from Products.PluginIndexes.interfaces import ITransposeQuery
from Products.ZCatalog.Catalog import CatalogError
from typing import Any
from ZODB.utils import u64
from ZODB.utils import z64


#: The tool's volatile attribute: its configuration, and the tid of the snapshot in which it was last found valid, or None.
CONFIGURATION_ATTRIBUTE = "_v_configuration"

# Registered here: the registry must not import the package of the text index.
BUILT_IN[ZCTextIndexTranslator.meta_type] = ZCTextIndexTranslator


@dataclass(frozen=True, eq=False)
class Configuration:
    """The indexes, columns and settings of a catalog in one ``state`` of its tool.

    Two configurations of one tool are the same if their states are equal.
    """

    #: the physical path of the tool
    path: tuple[str, ...]
    state: tuple[Any, ...]
    #: name -> translator; its ``index`` is a copy of the index object, bound to the unwrapped tool
    translators: Mapping[str, IndexTranslator]
    #: names of the metadata columns
    columns: tuple[str, ...]
    #: the typed columns and SQL indexes of the relation
    layout: Layout
    #: name -> index that rewrites queries (ITransposeQuery): an unwrapped, empty copy with its settings
    rewriters: Mapping[str, Any]
    #: name -> lexicon of a text index: a separate persistent object, whose state is not part of ``state``
    lexicons: Mapping[str, Any]
    #: the site's tuning of searches for words; None if there is none
    tuning: SiteTuning | None
    #: keys of idx that no brain reads: indexes without a metadata column
    excluded_keys: tuple[str, ...]
    #: the cache of compiled queries
    compiled_queries: CompiledQueries

    @classmethod
    def of(cls, tool: Any) -> "Configuration":
        """Return the configuration of the catalog *tool* in its present state.

        Raises CatalogError for an index type without a translator.
        """
        base = aq_base(tool)
        base._p_activate()
        configuration, tid = vars(base).get(CONFIGURATION_ATTRIBUTE, (None, None))
        now = unchanged_tid(base._p_jar)
        path = tool.getPhysicalPath()
        if configuration is not None and now is not None and now == tid and path == configuration.path:
            # The snapshot is the one in which it was valid, and the transaction has changed nothing.
            return configuration  # type: ignore[no-any-return]
        tuning = site_tuning(site_settings(tool), lambda: site_path(tool))
        unsaved = unsaved_oids(base._p_jar)
        states = [state_of(part, unsaved) for part in parts_of(base)]
        is_saved = not any(isinstance(state, dict) for state in states)
        state = (path, tuning, *states)
        if configuration is None or configuration.state != state:
            configuration = configured(cls, base, path, tuning, state, is_saved)
        setattr(base, CONFIGURATION_ATTRIBUTE, (configuration, now if is_saved else None))
        return configuration  # type: ignore[no-any-return]


def configured(
    cls: type[Configuration],
    base: Any,
    path: tuple[str, ...],
    tuning: SiteTuning | None,
    state: tuple[Any, ...],
    is_saved: bool,
) -> Configuration:
    """Build the configuration of *base*, an unwrapped tool, whose physical path is *path*.

    *is_saved* is False while the transaction has changed the *state*.
    """
    translators: dict[str, IndexTranslator] = {}
    for name, index in base._indexes.items():
        translator_type = translator_class(index.meta_type)
        if translator_type is None:
            raise CatalogError(f"no translator for indexes of type {index.meta_type!r} ({name})")
        translator = translators[name] = translator_type(settings_copy(base, index), base._index_columns[name])
        translator.physical_path = (*path, name)
        translator.relate(translators.__getitem__)
    columns = tuple(column for t in translators.values() for column in t.columns())
    indexes = tuple(index for t in translators.values() for index in t.sql_indexes())
    lexicons = {name: lexicon for name, i in base._indexes.items() if (lexicon := lexicon_of(base, i)) is not None}
    return cls(
        path,
        state,
        translators,
        base._columns,
        Layout(columns, indexes),
        {name: emptied(t.index) for name, t in translators.items() if ITransposeQuery.providedBy(t.index)},
        lexicons,
        tuning,
        tuple(name for name in translators if name not in base._columns),
        CompiledQueries(translators, lexicons, is_saved),
    )


def settings_copy(base: Any, index: Any) -> Any:
    """Return a copy of *index*, an index of the unwrapped tool *base*, wrapped in that tool."""
    cls: Any = type(index)
    copy = cls.__new__(cls)
    vars(copy).update({name: value for name, value in vars(index).items() if not name.startswith("_v_")})
    lexicon = lexicon_of(base, index)
    if lexicon is not None:
        # Otherwise the copy would look the lexicon up, and cache it wrapped.
        vars(copy)["_v_lexicon"] = lexicon
    return copy.__of__(base)


def lexicon_of(base: Any, index: Any) -> Any:
    """Return the lexicon of *index* if the unwrapped tool *base* has it, else None."""
    return vars(base).get(vars(index).get("lexicon_id", ""))


def emptied(index: Any) -> Any:
    """Return an empty, working copy of *index*, which has settings only."""
    copy = strip_data(aq_base(index))
    copy.clear()
    return copy


def parts_of(base: Any) -> Sequence[Any]:
    """Load and return the persistent objects of a configuration: the tool *base* and its indexes."""
    indexes = list(base._indexes.values())
    load(indexes)
    for index in indexes:
        touch(index)
    return [base, *indexes]


def touch(index: Any) -> Any:
    """Read an attribute of *index*, which marks it as recently used in the connection's cache."""
    return index.id


def load(indexes: Sequence[Any]) -> None:
    """Load the index objects together: one by one, each costs a new connection a round trip."""
    ghosts = [index for index in indexes if index._p_changed is None]
    if ghosts:
        prefetch(ghosts[0]._p_jar, [u64(index._p_oid) for index in ghosts])


def state_of(part: Any, unsaved: Container[bytes]) -> Any:
    """Return a value that identifies the state of *part*: its serial, or a copy of its attributes if it is not committed.

    *unsaved* are the oids of objects that a savepoint, or the running commit, has stored.
    """
    if not part._p_changed and part._p_serial != z64 and part._p_oid not in unsaved:
        serial: bytes = part._p_serial
        return serial
    return {
        name: dict(value) if type(value) is dict else value
        for name, value in vars(part).items()
        if not name.startswith("_v_")
    }
