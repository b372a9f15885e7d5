"""Lexicons as Plone has them."""

from Products.CMFPlone.UnicodeSplitter import I18NNormalizer
from Products.CMFPlone.UnicodeSplitter import Splitter as UnicodeSplitter
from Products.ZCTextIndex.Lexicon import Lexicon
from typing import Any


def plone_lexicon() -> Any:
    return Lexicon(UnicodeSplitter(), I18NNormalizer())
