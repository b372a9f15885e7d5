"""Repairs blocks of pages, stored without plone.pgcatalog, that zodb-json-codec mistakes for values of its own.

A state is repaired without loading its object: loading it may call the functions that a block names.
"""

from psycopg import Connection
from typing import Any
from ZODB.Connection import TransactionMetaData
from ZODB.utils import p64

import json
import pickle
import zodb_json_codec


#: Keys of dicts that make the codec load a class or call it.
CALLS = ("@cls", "@reduce")
#: The classes that `records.storable` writes in such dicts.
HARMLESS = (["builtins", "str"], ["builtins", "float"], ["builtins", "int"])
CURRENT = "SELECT class_mod, class_name, tid, state FROM object_state WHERE zoid = %s"


def repair_blocks(storage: Any, connection: Connection[Any], oids: list[int]) -> None:
    """Store the blocks of the objects *oids* as data in *storage*, in one transaction; *connection* reads its database.

    Raises ConflictError if one of the objects is saved meanwhile.
    """
    meta = TransactionMetaData(description="Store blocks that name code as data")
    storage.tpc_begin(meta)
    try:
        for oid in oids:
            [row] = connection.execute(CURRENT, [oid]).fetchall()
            state = row["state"] | {"blocks": repaired(row["state"]["blocks"])}
            data = zodb_json_codec.encode_zodb_record({"@cls": [row["class_mod"], row["class_name"]], "@s": state})
            storage.store(p64(oid), p64(row["tid"]), data, "", meta)
        storage.tpc_vote(meta)
    except BaseException:  # also KeyboardInterrupt: the storage is locked until the transaction ends
        storage.tpc_abort(meta)
        raise
    storage.tpc_finish(meta)


def repaired(value: Any) -> Any:
    """Return the JSON *value* of a state with each dict that names a class or a call in the codec's form for data."""
    if isinstance(value, list):
        return [repaired(item) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"@reduce": {"callable": {"@cls": names, **more}, "args": args, **other}, **rest} if (
            names in HARMLESS and not more and not other and not rest
        ):
            return {"@reduce": {"callable": {"@cls": names}, "args": repaired(args)}}
    return (
        as_data(value) if any(key in value for key in CALLS) else {key: repaired(item) for key, item in value.items()}
    )


def as_data(value: Any) -> Any:
    """Return the form in which the codec stores the JSON *value* as a dict."""
    record = pickle.dumps(("", ""), 3) + pickle.dumps({"value": value}, 3)
    return json.loads(zodb_json_codec.decode_zodb_record_for_pg_json(record)[2])["value"]
