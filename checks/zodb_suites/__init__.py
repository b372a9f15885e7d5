"""ZODB's own tests of storages, on zodb-pgjsonb without this package and with it."""
