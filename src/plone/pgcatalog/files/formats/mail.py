"""Mails: subject, addresses, bodies and attachments."""

from contextlib import suppress
from email.errors import MessageError
from email.header import decode_header
from email.header import make_header
from email.message import Message
from io import BytesIO
from plone.pgcatalog.files.formats.parts import Parts
from plone.pgcatalog.files.formats.parts import Unreadable
from plone.pgcatalog.files.formats.web import decoded
from plone.pgcatalog.files.formats.web import html

import email
import email.policy
import re


HEADERS = ("Subject", "From", "To", "Cc", "Date")
#: Encodings that mean a larger one in mails.
ENCODINGS = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "ks_c_5601-1987": "cp949",
    "euc-kr": "cp949",
    "shift_jis": "cp932",
    "iso-2022-jp": "iso-2022-jp-3",
}


def read(path: str, name: str, parts: Parts) -> str:
    """Return the text of the mail at *path*.  Raises Unreadable."""
    with open(path, "rb") as stream:
        try:
            message = email.message_from_binary_file(stream, policy=email.policy.compat32)
        except RecursionError as error:
            raise Unreadable("a mail in a mail, too often") from error
    return "\n".join(filter(None, texts_of(message, parts)))


def texts_of(message: Message, parts: Parts) -> list[str]:
    """Return the headers of *message*, the texts of its bodies, and those of its attachments."""
    values = {name.lower(): value for name, value in reversed(list(message.raw_items()))}
    texts = [f"{name}: {header(values[name.lower()])}" for name in HEADERS if name.lower() in values]
    plain: list[str] = []
    rich: list[str] = []
    attached: list[str] = []
    for part in leaves(message):
        kind, name = part.get_content_type(), header(part.get_filename() or "")
        if kind == "message/rfc822":
            attached += [parts.text(name, kind, BytesIO(mail.as_bytes())) for mail in messages(part)]
        elif kind in ("text/plain", "text/html") and not name and part.get_content_disposition() != "attachment":
            charset = (part.get_content_charset("") or "").lower()
            data = payload(part)
            if kind == "text/html":
                rich.append(html(data, parts.longest, ENCODINGS.get(charset, charset)))
            else:
                plain.append(decoded(data, ENCODINGS.get(charset, charset)).replace("\f", "\n"))
        else:
            attached.append(parts.text(name, kind, BytesIO(payload(part))))
    # A mail has its text in both kinds, as a rule.
    known = words("\n".join(rich))
    return [*texts, *(text for text in plain if not words(text) <= known), *rich, *attached]


def leaves(message: Message) -> list[Message]:
    """Return the parts of *message* without those of mails in it."""
    if message.get_content_type() == "message/rfc822" and message.is_multipart():
        return [message]
    if message.is_multipart():
        return [leaf for part in messages(message) for leaf in leaves(part)]
    return [message]


def messages(message: Message) -> list[Message]:
    """Return the parts of *message*."""
    return [part for part in message.get_payload() if isinstance(part, Message)]


def payload(part: Message) -> bytes:
    """Return the bytes of *part*."""
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def header(value: object) -> str:
    """Return the *value* of a header with its encoded words decoded."""
    text = str(value)
    with suppress(ValueError, LookupError, MessageError):  # an encoding that Python does not know
        text = str(make_header(decode_header(text)))
    # Bytes of a header that is not encoded at all.
    if any("\udc80" <= letter <= "\udcff" for letter in text):
        text = decoded(text.encode("utf-8", "surrogateescape"))
    return " ".join(text.split())


def words(text: str) -> set[str]:
    """Return the words of *text*."""
    return set(re.findall(r"\w+", text))
