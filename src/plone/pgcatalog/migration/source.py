"""What zodb-pgjsonb 1.19 leaves out when its transactions are copied."""

from collections.abc import Iterator
from typing import Any
from ZODB.blob import Blob
from ZODB.blob import is_blob_record

import pickle


#: How a record of a blob begins when the storage has made it of JSON, and as ZODB writes it itself.
#: ZODB's ``is_blob_record``, by which a copy finds the files, knows the second form only.
TRANSCODED = b"\x80\x02X\x09\x00\x00\x00ZODB.blobX\x04\x00\x00\x00Blob\x86N\x86."
BLOB = pickle.dumps(Blob, 3) + pickle.dumps(None, 3)


def is_blob(data: bytes) -> bool:
    """True when *data* is the record of a blob, in either form."""
    return bool(data.startswith(TRANSCODED) or is_blob_record(data))


class CompleteSource:
    """A zodb-pgjsonb *storage* to copy from that hands out everything.

    By itself it takes the states of empty BTrees and of blobs for those of removed objects.
    """

    def __init__(self, storage: Any) -> None:
        self.storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self.storage, name)

    def iterator(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """Yield the transactions; each can be iterated over for its records."""
        for transaction in self.storage.iterator(*args, **kwargs):
            for record in transaction:
                if record.data is None:
                    record.data = self.storage.loadSerial(record.oid, record.tid)
                if record.data.startswith(TRANSCODED):
                    record.data = BLOB
            yield transaction

    def loadSerial(self, oid: bytes, serial: bytes) -> bytes:
        """Return the state of an object, that of a blob in the form of ZODB."""
        data: bytes = self.storage.loadSerial(oid, serial)
        return BLOB if data.startswith(TRANSCODED) else data
