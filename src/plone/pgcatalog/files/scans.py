"""Recognition of the text of scanned pages and pictures: Tesseract's languages of a site."""

from functools import cache
from plone.pgcatalog import settings
from Products.CMFCore.utils import getToolByName
from typing import Any

import os
import shutil
import subprocess


#: The program; its folder is one of the operating system's, as in the process that extracts texts.
PROGRAM = "tesseract"
_CODES = """
ar ara  bg bul  ca cat  cs ces  da dan  de deu  el ell  en eng  es spa  et est  eu eus  fa fas
fi fin  fr fra  gl glg  he heb  hi hin  hr hrv  hu hun  it ita  ja jpn  ko kor  lt lit  lv lav
nl nld  no nor  pl pol  pt por  ro ron  ru rus  sk slk  sl slv  sr srp  sv swe  th tha  tr tur
uk ukr  vi vie  zh-cn chi_sim  zh-tw chi_tra  zh chi_sim  nb nor  nn nor
"""
#: Language of a site -> Tesseract's.
LANGUAGES = dict(zip(_CODES.split()[::2], _CODES.split()[1::2], strict=True))


def languages_of(tool: Any) -> list[str]:
    """Return Tesseract's languages for the site of the catalog *tool*; [] if its setting is off, or if Tesseract is missing.

    The languages are those of the site that are installed, else English or another one.
    """
    if not settings.text_of_scans(tool):
        return []
    known = installed()
    codes = getToolByName(tool, "portal_languages").getSupportedLanguages()
    chosen = [LANGUAGES.get(code.lower(), LANGUAGES.get(code.lower().split("-")[0], "")) for code in codes]
    return [name for name in dict.fromkeys(chosen) if name in known] or sorted({"eng"} & known or known)[:1]


@cache
def installed() -> frozenset[str]:
    """Return the languages of the installed Tesseract; empty if it is missing."""
    program = shutil.which(PROGRAM, path=os.defpath)
    if program is None:
        return frozenset()
    listed = subprocess.run([program, "--list-langs"], capture_output=True, text=True, check=False)
    return frozenset(listed.stdout.split("\n")[1:]) - {"", "osd"}
