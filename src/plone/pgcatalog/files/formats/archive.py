"""Archives: the names of their members and the texts of these."""

from plone.pgcatalog.files.formats.package import ZIP_ERRORS
from plone.pgcatalog.files.formats.parts import MOST_PARTS
from plone.pgcatalog.files.formats.parts import Parts
from plone.pgcatalog.files.formats.parts import Unreadable
from typing import cast
from typing import IO

import gzip
import tarfile
import zipfile


def read_zip(path: str, name: str, parts: Parts) -> str:
    """Return the names and texts of the members of the zip at *path*.  Raises Unreadable."""
    texts: list[str] = []
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.is_dir() or not is_wanted(texts, parts):
                    continue
                try:
                    with archive.open(info) as stream:
                        texts.append(parts.text(info.filename, "", stream))
                except ZIP_ERRORS as error:
                    texts.append(info.filename)
                    parts.errors.append(f"{info.filename}: {error}")
    except ZIP_ERRORS as error:
        raise Unreadable(f"not a zip archive: {error}") from error
    return "\n".join(texts)


def read_tar(path: str, name: str, parts: Parts) -> str:
    """Return the names and texts of the files in the tar at *path*, packed or not.  Raises Unreadable."""
    texts: list[str] = []
    try:
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                # Links are not followed.
                stream = archive.extractfile(member) if member.isreg() and is_wanted(texts, parts) else None
                if stream is not None:
                    texts.append(parts.text(member.name, "", stream))
    except (tarfile.TarError, *ZIP_ERRORS) as error:
        if not texts:
            raise Unreadable(f"not a tar archive: {error}") from error
        parts.errors.append(str(error))
    return "\n".join(texts)


def read_gzip(path: str, name: str, parts: Parts) -> str:
    """Return the text of the file, or of the tar, in the gzip at *path*.  Raises Unreadable."""
    try:
        if tarfile.is_tarfile(path):
            return read_tar(path, name, parts)
        with gzip.open(path) as stream:
            return parts.text(name.removesuffix(".gz"), "", cast("IO[bytes]", stream))
    except ZIP_ERRORS as error:
        raise Unreadable(f"not a gzip: {error}") from error


def is_wanted(texts: list[str], parts: Parts) -> bool:
    """True as long as *texts*, and the number of all parts, are below the limits."""
    return parts.count < MOST_PARTS and sum(map(len, texts)) < parts.longest
