"""Scanned pages: their text is recognised by Tesseract."""

from plone.pgcatalog.files.formats.parts import Parts
from time import monotonic
from typing import Any

import os
import subprocess


#: Dots per inch of the picture of a page, and most pixels of its longer side.
RESOLUTION = 300
LONGEST_SIDE = 5000


def recognised(page: Any, parts: Parts) -> str:
    """Return the text in the picture of *page*, of PDFium; "" when the time of *parts* is over, or if Tesseract fails."""
    left = parts.deadline - monotonic()
    if left <= 0:
        return ""
    command = ["tesseract", "stdin", "stdout", "-l", parts.languages]
    environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
    try:
        result = subprocess.run(
            command, input=picture(page), capture_output=True, timeout=left, env=environment, check=True
        )
    except (subprocess.SubprocessError, OSError) as error:
        parts.errors.append(f"Tesseract: {error}")
        return ""
    return result.stdout.decode("utf-8", "replace").replace("\f", "\n").strip()


def picture(page: Any) -> bytes:
    """Return the picture of *page* in shades of grey, as PGM."""
    scale = min(RESOLUTION / 72, LONGEST_SIDE / max(*page.get_size(), 1))
    bitmap = page.render(scale=scale, grayscale=True)
    data, width, height, stride = bytes(bitmap.buffer), bitmap.width, bitmap.height, bitmap.stride
    bitmap.close()
    rows = b"".join(data[start : start + width] for start in range(0, height * stride, stride))
    return b"P5 %d %d 255\n" % (width, height) + rows
