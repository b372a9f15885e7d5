"""Asks an embedder for vectors: any server that speaks OpenAI's ``/v1/embeddings``, at a URL that the administrator sets."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import hypot
from math import isfinite
from math import nan
from plone.pgcatalog.meaning.exchange import ExchangeFailed
from plone.pgcatalog.meaning.exchange import post
from plone.pgcatalog.meaning.exchange import Response
from typing import Any
from urllib.parse import urlsplit

import json
import os


#: The variable of the environment with the key of the embedder.
KEY = "PGCATALOG_EMBEDDER_KEY"
#: Seconds that a question may take: then words answer alone.
QUESTION_SECONDS = 0.3
#: Seconds that a batch of passages may take.
PASSAGES_SECONDS = 120.0
#: Passages of a message.
BATCH = 16
#: Characters of a text that is sent.
LONGEST_TEXT = 4000
#: Dimensions that pgvector's halfvec can have.
MOST_DIMENSIONS = 16_000
#: Bytes of an answer that are read for each text: a vector of MOST_DIMENSIONS has half as many.
LONGEST_ANSWER = 1 << 20
#: Seconds after which an embedder that is out of reach gets pages again; and the longest pause that it can ask for.
PAUSE = 30.0
LONGEST_PAUSE = 3600.0
#: Characters of an embedder's own words about what is wrong.
LONGEST_REASON = 200
#: What a model's name may have in it: replaced by "query" or "passage", for servers that tell the two apart by the name.
KIND = "{kind}"
#: HTTP's answers about the text that was sent; any other failure is the server's.
ABOUT_THE_TEXT = (400, 413, 422)

#: How the reasons begin of an embedder that wants a key.
NEEDS_KEY = ("the embedder answers 401", "the embedder answers 403")
#: What an embedder is asked to learn its dimension, or whether it answers.
PROBE = "dimension"
#: Seconds until an embedder that is asked whether it answers counts as one that does not.
PROBE_SECONDS = 2.0

Vector = list[float]


class EmbedderError(Exception):
    """An embedder gave no vectors; the message says why.

    *is_down* if it is out of reach, or set up wrongly, so that no text has vectors now; *retry_after* are the seconds of
    the pause that it asks for, if any.  *is_about_text* if it refuses what was sent.
    """

    def __init__(
        self, reason: str, *, is_down: bool = False, retry_after: float | None = None, is_about_text: bool = False
    ) -> None:
        super().__init__(reason)
        self.is_down = is_down
        self.retry_after = retry_after
        self.is_about_text = is_about_text

    @property
    def pause(self) -> float:
        """Seconds until the next page is sent."""
        return PAUSE if self.retry_after is None else self.retry_after


@dataclass(frozen=True, slots=True)
class Embedder:
    """The embedder at *url*, the base of an API such as ``http://127.0.0.1:8000/v1``, with its *model*.

    The prefixes stand before each text, as some models want it.  Vectors have the length 1, and all the same dimension.
    """

    url: str
    model: str
    question_prefix: str = ""
    passage_prefix: str = ""

    def embed_question(self, text: str, seconds: float = QUESTION_SECONDS) -> tuple[Vector, str]:
        """Return the vector of *text*, what somebody searches for, and the name of the model as the embedder gives it.

        Raises EmbedderError, after *seconds* at the latest.
        """
        [vector], name = self._embed([text], "query", self.question_prefix, seconds)
        return vector, name

    def embed_questions(self, texts: Sequence[str], seconds: float = PASSAGES_SECONDS) -> list[Vector]:
        """Return the vectors of *texts* as questions.  Raises EmbedderError; each message may take *seconds*."""
        batches = (texts[first : first + BATCH] for first in range(0, len(texts), BATCH))
        return [vector for batch in batches for vector in self._embed(batch, "query", self.question_prefix, seconds)[0]]

    def is_same_model(self, of_question: str, of_passages: str) -> bool:
        """True if these names, given with a question and with passages, are those of one model."""
        named = of_passages.replace("passage", "query") if KIND in self.model else of_passages
        return of_question in (of_passages, named)

    def embed_passages(self, texts: Sequence[str], seconds: float = PASSAGES_SECONDS) -> tuple[list[Vector], str]:
        """Return the vectors of *texts*, parts of pages, and the name of the model as the embedder gives it.

        Raises EmbedderError; each message may take *seconds*.
        """
        vectors: list[Vector] = []
        name = ""
        for first in range(0, len(texts), BATCH):
            more, name = self._embed(texts[first : first + BATCH], "passage", self.passage_prefix, seconds)
            vectors += more
        if len({len(vector) for vector in vectors}) > 1:
            raise EmbedderError("the embedder has given vectors of different dimensions", is_down=True)
        return vectors, name

    def _embed(self, texts: Sequence[str], kind: str, prefix: str, seconds: float) -> tuple[list[Vector], str]:
        body = {
            "model": self.model.replace(KIND, kind),
            "input": [encodable(f"{prefix.strip()} {text}".strip()[:LONGEST_TEXT]) or "-" for text in texts],
            "encoding_format": "float",
        }
        answer = self._request(texts, body, seconds)
        return vectors_in(answer, len(texts)), name_in(answer)

    def _request(self, texts: Sequence[str], body: dict[str, Any], seconds: float) -> Any:
        """Return the JSON value that answers *body*.  Raises EmbedderError."""
        most_bytes = LONGEST_ANSWER * len(texts)
        try:
            response = post(endpoint(self.url), body, headers(), seconds, most_bytes)
        except ExchangeFailed as error:
            raise EmbedderError(str(error)[:LONGEST_REASON], is_down=True) from error
        if response.status != 200:
            raise refused(response)
        try:
            return json.loads(response.body)
        except (ValueError, RecursionError) as error:
            raise EmbedderError("the answer of the embedder is no JSON", is_down=True) from error


def ask_embedders(catalogs: list[dict[str, Any]]) -> None:
    """Add to each of *catalogs* that has an embedder in its ``settings`` why that gives no vectors: ``embedder_fault``, or "".

    An embedder is asked for the vector of a word, as for a question, and with the key of this process: a refusal says nothing
    where there is none.
    """
    for catalog in catalogs if is_installed() else ():
        url, *others = (str(value).strip() for value in catalog["settings"].values())
        if not url:
            continue
        catalog["embedder_fault"] = ""
        try:
            Embedder(url, *others).embed_question(PROBE, PROBE_SECONDS)
        except EmbedderError as error:
            is_refused = str(error).startswith(NEEDS_KEY) and not os.environ.get(KEY)
            catalog["embedder_fault"] = "" if is_refused else str(error)


def is_installed() -> bool:
    """True if the extra ``plone.pgcatalog[meaning]`` is installed."""
    return find_spec("httpx") is not None


def headers() -> dict[str, str]:
    """Return what each request says besides its body; the key comes from the environment."""
    # A compressed answer could be of any length.
    plain = {"Accept": "application/json", "Accept-Encoding": "identity"}
    key = os.environ.get(KEY, "").strip()
    return plain | {"Authorization": f"Bearer {key}"} if key else plain


def endpoint(url: str) -> str:
    """Return the address that vectors are asked for at, of the base *url* of an API.  Raises EmbedderError."""
    if not is_url(url):
        raise EmbedderError("the URL of the embedder does not begin with http:// or https://", is_down=True)
    url = url.strip().rstrip("/")
    return url if url.endswith("/embeddings") else f"{url}/embeddings"


def is_url(url: str) -> bool:
    """True for an address that an embedder can have."""
    try:
        parts = urlsplit(url.strip())
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query and not parts.fragment
    except ValueError:
        return False


def refused(response: Response) -> EmbedderError:
    """Return the error for *response*, whose status is not 200, with the beginning of its body."""
    status = response.status
    words = " ".join(response.body[:LONGEST_REASON].decode(errors="replace").split())
    reason = f"the embedder answers {status}{': ' if words else ''}{words}"
    if status in ABOUT_THE_TEXT:
        return EmbedderError(reason, is_about_text=True)
    if 300 <= status < 400:
        reason = f"the embedder answers {status}, a redirect, which is not followed"
    try:
        seconds = float(response.retry_after)
    except ValueError:
        seconds = nan
    retry_after = min(max(seconds, 1.0), LONGEST_PAUSE) if isfinite(seconds) else None
    # A server that fails may do so for one text only.  All other statuses concern each text.
    return EmbedderError(reason, is_down=status != 500, retry_after=retry_after)


def name_in(answer: Any) -> str:
    """Return the name of the model in *answer*, "" without one."""
    name = answer.get("model")
    return encodable(name[:LONGEST_REASON].replace("\0", "")) if isinstance(name, str) else ""


def encodable(text: str) -> str:
    """Return *text* with a question mark for each half of a surrogate pair, which UTF-8 has no bytes for."""
    return text.encode(errors="replace").decode()


def vectors_in(answer: Any, count: int) -> list[Vector]:
    """Return the *count* vectors of *answer* in their order, of length 1.  Raises EmbedderError if they are none."""
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or len(data) != count or not all(isinstance(item, dict) for item in data):
        raise EmbedderError(f"the answer of the embedder has not the vectors of {count} texts", is_down=True)
    places = [item.get("index", number) for number, item in enumerate(data)]
    if not all(isinstance(place, int) for place in places):
        raise EmbedderError("the answer of the embedder has an index that is no number", is_down=True)
    by_index = {place: item.get("embedding") for place, item in zip(places, data, strict=True)}
    vectors = [unit_vector(by_index.get(number)) for number in range(count)]
    if len({len(vector) for vector in vectors}) != 1:
        raise EmbedderError("the embedder has given vectors of different dimensions", is_down=True)
    return vectors


def unit_vector(values: Any) -> Vector:
    """Return *values* as a vector of length 1.  Raises EmbedderError for what is no vector, or has no direction."""
    if not isinstance(values, list) or not 0 < len(values) <= MOST_DIMENSIONS:
        raise EmbedderError("the embedder has given no vector", is_down=True)
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        raise EmbedderError("the embedder has given a vector with something that is no number", is_down=True)
    try:
        length = hypot(*values)
    except OverflowError:
        length = float("inf")
    if not isfinite(length) or not length:
        raise EmbedderError("the embedder has given a vector with NaN, without an end, or of zeros", is_down=True)
    return [value / length for value in values]
