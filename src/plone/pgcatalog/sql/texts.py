"""What PostgreSQL's texts hold."""

import re


#: NUL and lone surrogates have no place in PostgreSQL's UTF-8.
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """Return *text* with U+FFFD for what PostgreSQL cannot hold."""
    return UNSTORABLE.sub("\ufffd", text)
