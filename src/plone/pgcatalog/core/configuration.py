"""What a catalog tool is set to: worked out once for each state of its settings, and not changed afterwards.

A configuration belongs to the tool of one ZODB connection, where it hangs as a volatile attribute: it holds no object of
another connection, and goes when the tool's state does.
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


#: The tool's volatile attribute that holds its configuration, and the snapshot in which it was found to be right.
ATTRIBUTE = "_v_configuration"

# The registry cannot: the room of the text index is above its own.
BUILT_IN[ZCTextIndexTranslator.meta_type] = ZCTextIndexTranslator


@dataclass(frozen=True, eq=False)
class Configuration:
    """The indexes, columns and settings that a catalog has in one state of its tool.

    ``state`` is that state; two configurations of one tool are the same if it is.  ``is_saved`` is False while the
    transaction has changed it.
    """

    #: where the tool is
    path: tuple[str, ...]
    state: tuple[Any, ...]
    is_saved: bool
    #: name -> translator; its ``index`` is a copy of the index object, bound to the unwrapped tool
    translators: Mapping[str, IndexTranslator]
    #: names of the metadata columns
    columns: tuple[str, ...]
    #: the typed columns and SQL indexes of the relation
    layout: Layout
    #: name -> index that rewrites queries (ITransposeQuery): an empty one with its settings, bound to nothing
    rewriters: Mapping[str, Any]
    #: name -> lexicon of a text index: an object of its own, whose state is not part of this one
    lexicons: Mapping[str, Any]
    #: how the site's editors tune searches for words; None for not at all
    tuning: SiteTuning | None
    #: keys of idx that no brain asks for: indexes that are no metadata columns
    excluded_keys: tuple[str, ...]
    #: the queries that were compiled last
    compiled: CompiledQueries

    @classmethod
    def of(cls, tool: Any) -> "Configuration":
        """Return the configuration of the catalog *tool* in the state it has now.

        Raises CatalogError for an index type that nobody can translate.
        """
        base = aq_base(tool)
        base._p_activate()
        configuration, tid = vars(base).get(ATTRIBUTE, (None, None))
        now = unchanged_tid(base._p_jar)
        path = tool.getPhysicalPath()
        if configuration is not None and now is not None and now == tid and path == configuration.path:
            # The snapshot in which it was right, and nothing has been changed since.
            return configuration  # type: ignore[no-any-return]
        tuning = site_tuning(site_settings(tool), lambda: site_path(tool))
        unsaved = unsaved_oids(base._p_jar)
        states = [state_of(part, unsaved) for part in parts_of(base)]
        is_saved = not any(isinstance(state, dict) for state in states)
        state = (path, tuning, *states)
        if configuration is None or configuration.state != state:
            configuration = configured(cls, base, path, tuning, state, is_saved)
        setattr(base, ATTRIBUTE, (configuration, now if is_saved else None))
        return configuration  # type: ignore[no-any-return]


def configured(
    cls: type[Configuration],
    base: Any,
    path: tuple[str, ...],
    tuning: SiteTuning | None,
    state: tuple[Any, ...],
    is_saved: bool,
) -> Configuration:
    """Return the configuration of *base*, an unwrapped tool that is at *path*."""
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
        is_saved,
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
    """Return a copy of *index*, which the unwrapped tool *base* keeps, in that tool."""
    cls: Any = type(index)
    copy = cls.__new__(cls)
    vars(copy).update({name: value for name, value in vars(index).items() if not name.startswith("_v_")})
    lexicon = lexicon_of(base, index)
    if lexicon is not None:
        # Else the copy would look it up and keep it wrapped.
        vars(copy)["_v_lexicon"] = lexicon
    return copy.__of__(base)


def lexicon_of(base: Any, index: Any) -> Any:
    """Return the lexicon of *index* if the unwrapped tool *base* has it, else None."""
    return vars(base).get(vars(index).get("lexicon_id", ""))


def emptied(index: Any) -> Any:
    """Return a working, empty copy of *index*, which has settings only."""
    copy = strip_data(aq_base(index))
    copy.clear()
    return copy


def parts_of(base: Any) -> Sequence[Any]:
    """Return the persistent objects that a configuration is made of, loaded: the tool *base* and its indexes."""
    indexes = list(base._indexes.values())
    load(indexes)
    for index in indexes:
        touch(index)
    return [base, *indexes]


def touch(index: Any) -> Any:
    """Read an attribute of *index*, so that the connection's cache keeps it."""
    return index.id


def load(indexes: Sequence[Any]) -> None:
    """Have the index objects loaded together: one by one each costs a new connection a round trip."""
    ghosts = [index for index in indexes if index._p_changed is None]
    if ghosts:
        prefetch(ghosts[0]._p_jar, [u64(index._p_oid) for index in ghosts])


def state_of(part: Any, unsaved: Container[bytes]) -> Any:
    """Return what tells the state of *part* from its others: its serial, or the settings it has if that is not saved.

    *unsaved* are the oids of what a savepoint, or the running commit, has stored.
    """
    if not part._p_changed and part._p_serial != z64 and part._p_oid not in unsaved:
        serial: bytes = part._p_serial
        return serial
    return {
        name: dict(value) if type(value) is dict else value
        for name, value in vars(part).items()
        if not name.startswith("_v_")
    }
