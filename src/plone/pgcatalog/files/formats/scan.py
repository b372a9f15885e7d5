"""Scanned pages and pictures: Tesseract recognises their text."""

from collections.abc import Callable
from functools import partial
from itertools import islice
from plone.pgcatalog.files.formats.parts import Parts
from plone.pgcatalog.files.formats.parts import Postponed
from plone.pgcatalog.files.formats.parts import Unreadable
from time import monotonic
from typing import Any

import os
import resource
import signal
import subprocess


#: Dots per inch of the picture of a page, and most pixels of the longer side of a picture.
RESOLUTION = 300
LONGEST_SIDE = 5000
#: Formats of pictures, by Pillow's names; for others it may start programs.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")
#: Most pixels of the longer side of a picture that is enlarged, such as of a part of a screen, with small letters.
SMALL = 1200
#: Most scanned pages of a file.
MOST_SCANS = 500
#: Most seconds of the processor for a page; and most seconds, which pass on a busy machine.
PAGE_SECONDS = 60
WAITED_SECONDS = 120.0


def text_of_scan(picture: Callable[[], bytes], parts: Parts) -> str:
    """Count a scanned page, and return the text in its *picture*, a PGM; "" as long as it is not recognised.

    It is recognised if all scans before it are, unless the time of *parts* is over.  Raises Postponed.
    """
    number = parts.scans
    if number >= MOST_SCANS:
        return ""
    parts.scans += 1
    if parts.languages and number == len(parts.pages):
        parts.pages.append(recognised(picture(), parts))
        if monotonic() >= parts.deadline:
            parts.languages = ""
    return parts.pages[number] if number < len(parts.pages) else ""


def recognised(picture: bytes, parts: Parts) -> str:
    """Return the text in *picture*, a PGM; "" if Tesseract fails.  Raises Postponed if it cannot work."""
    command = ["tesseract", "stdin", "stdout", "-l", parts.languages]
    environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
    try:
        result = subprocess.run(
            command,
            input=picture,
            capture_output=True,
            timeout=WAITED_SECONDS,
            env=environment,
            # It ends even if this process was killed.  The signal of the first limit is not the kernel's for short memory.
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (PAGE_SECONDS, PAGE_SECONDS + 5)),
            check=True,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Postponed(f"Tesseract: {error}") from error
    except subprocess.CalledProcessError as error:
        if error.returncode == -signal.SIGKILL:
            # By the kernel, when memory was short: the page need not be the reason.
            raise Postponed("Tesseract was killed") from error
        parts.errors.append(f"Tesseract: {error}")
        return ""
    return result.stdout.decode("utf-8", "replace").replace("\f", "\n").strip()


def of_page(page: Any) -> bytes:
    """Return the picture of *page*, of PDFium, in shades of grey, as PGM."""
    scale = min(RESOLUTION / 72, LONGEST_SIDE / max(*page.get_size(), 1))
    bitmap = page.render(scale=scale, grayscale=True)
    data, width, height, stride = bytes(bitmap.buffer), bitmap.width, bitmap.height, bitmap.stride
    bitmap.close()
    rows = b"".join(data[start : start + width] for start in range(0, height * stride, stride))
    return b"P5 %d %d 255\n" % (width, height) + rows


def read_picture(path: str, name: str, parts: Parts) -> str:
    """Return the recognised text of the picture at *path*; a TIFF may have several pages.  Raises Unreadable, Postponed."""
    # Pillow takes memory that readers of other files do not need.
    from PIL import Image
    from PIL import ImageOps
    from PIL import ImageSequence

    def grey(frame: Any) -> bytes:
        picture = ImageOps.exif_transpose(frame)
        if picture.has_transparency_data:
            picture = picture.convert("RGBA")
            picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
        if picture.mode.startswith("I;16"):
            # Pillow cuts values off instead of dividing them.
            picture = picture.point(lambda value: value * (1 / 256))
        picture = picture.convert("L")
        if max(picture.size) <= SMALL:
            picture = picture.resize((2 * picture.width, 2 * picture.height), Image.Resampling.LANCZOS)
        picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
        return b"P5 %d %d 255\n" % picture.size + picture.tobytes()

    try:
        with Image.open(path, formats=FORMATS) as image:
            frames = ImageSequence.Iterator(image) if image.format == "TIFF" else iter([image])
            return "\n\f".join(text_of_scan(partial(grey, frame), parts) for frame in islice(frames, MOST_SCANS))
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        # The message of Pillow has the path.
        raise Unreadable(f"not a picture: {type(error).__name__}") from error
