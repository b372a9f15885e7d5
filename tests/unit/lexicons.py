"""Lexicons as Plone has them."""

from Products.CMFPlone.UnicodeSplitter import I18NNormalizer
from Products.CMFPlone.UnicodeSplitter import Splitter as UnicodeSplitter
from Products.ZCTextIndex.Lexicon import CaseNormalizer
from Products.ZCTextIndex.Lexicon import Lexicon
from Products.ZCTextIndex.Lexicon import Splitter
from Products.ZCTextIndex.Lexicon import StopWordRemover
from typing import Any


def plone_lexicon() -> Any:
    return Lexicon(UnicodeSplitter(), I18NNormalizer())


def plaintext_lexicon() -> Any:
    return Lexicon(Splitter(), CaseNormalizer(), StopWordRemover())
