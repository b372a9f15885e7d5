"""Client of an embedder: any server with OpenAI's ``/v1/embeddings`` API, at a URL that the administrator sets."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import batched
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


#: The environment variable with the key of the embedder.
KEY = "PGCATALOG_EMBEDDER_KEY"
#: Time limit in seconds for the vector of a question; without it the search uses words only.
QUESTION_SECONDS = 0.3
#: Time limit in seconds for a batch of passages, or of questions for a calibration.
PASSAGES_SECONDS = 120.0
#: Most texts in a request.
BATCH = 16
#: Most characters of a text that are sent.
LONGEST_TEXT = 4000
#: Most dimensions of pgvector's halfvec.
MOST_DIMENSIONS = 16_000
#: Most bytes of a response per text; a vector of MOST_DIMENSIONS has half as many.
LONGEST_ANSWER = 1 << 20
#: Seconds without requests for pages after a failure of the embedder; and the longest pause that the embedder can request.
PAUSE = 30.0
LONGEST_PAUSE = 3600.0
#: Most characters of a reason from an embedder.
LONGEST_REASON = 200
#: Placeholder in a model's name, replaced by "query" or "passage", for servers that distinguish the two by the name.
KIND = "{kind}"
#: HTTP statuses that refuse the text; any other failure is the server's.
ABOUT_THE_TEXT = (400, 413, 422)

#: Beginnings of the reasons of an embedder that needs a key.
NEEDS_KEY = ("the embedder returns 401", "the embedder returns 403")
#: The text that is sent to find out the dimension of the vectors, or whether the embedder responds.
PROBE = "dimension"
#: Time limit in seconds for a check whether an embedder responds.
PROBE_SECONDS = 2.0

Vector = list[float]


class EmbedderError(Exception):
    """An embedder returned no vectors; the message is the reason.

    - *is_down*: it is out of reach or set up wrongly, so that no text gets vectors now.
    - *retry_after*: the pause in seconds that it requests, or None.
    - *is_about_text*: it refuses the text that was sent.
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
        """The seconds to wait before the embedder gets texts of pages again: *retry_after*, or PAUSE without it."""
        return PAUSE if self.retry_after is None else self.retry_after


@dataclass(frozen=True, slots=True)
class Embedder:
    """The embedder at *url*, the base of an API such as ``http://127.0.0.1:8000/v1``, with a *model*.

    Each text gets a prefix, which some models require.  Vectors have length 1, and all the same dimension.
    """

    url: str
    model: str
    question_prefix: str = ""
    passage_prefix: str = ""

    def embed_question(self, text: str, seconds: float = QUESTION_SECONDS) -> tuple[Vector, str]:
        """Return the vector of *text*, a question, and the name of the model in the response.

        Raises EmbedderError, after *seconds* at the latest.
        """
        [vector], name = self._embed([text], "query", self.question_prefix, seconds)
        return vector, name

    def embed_questions(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of *texts*, as questions.  Raises EmbedderError."""
        return self._embed_in_batches(texts, "query", self.question_prefix)[0]

    def is_same_model(self, of_question: str, of_passages: str) -> bool:
        """True if the names of models in the responses for a question and for passages mean the same model."""
        named = of_passages.replace("passage", "query") if KIND in self.model else of_passages
        return of_question in (of_passages, named)

    def embed_passages(self, texts: Sequence[str]) -> tuple[list[Vector], str]:
        """Return the vectors of *texts*, parts of pages, and the name of the model in the response.  Raises EmbedderError."""
        return self._embed_in_batches(texts, "passage", self.passage_prefix)

    def _embed_in_batches(self, texts: Sequence[str], kind: str, prefix: str) -> tuple[list[Vector], str]:
        vectors: list[Vector] = []
        name = ""
        for batch in batched(texts, BATCH):
            more, name = self._embed(batch, kind, prefix, PASSAGES_SECONDS)
            vectors += more
        if len({len(vector) for vector in vectors}) > 1:
            raise EmbedderError("the embedder returned vectors of different dimensions", is_down=True)
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
        """Return the JSON value of the response to *body*.  Raises EmbedderError."""
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
            raise EmbedderError("the response of the embedder is not JSON", is_down=True) from error


def check_embedders(catalogs: list[dict[str, Any]]) -> None:
    """Set ``embedder_fault`` of each of *catalogs* with an embedder in its ``settings``: why it returns no vectors, or "".

    Each embedder is sent a question, PROBE, with the key of this process.  A refusal is ignored if this process has no key.
    Without the extra ``meaning``, nothing is set.
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
    """Return the headers of each request, with the key from the environment if there is one."""
    # A small compressed response could unpack to any length.
    plain = {"Accept": "application/json", "Accept-Encoding": "identity"}
    key = os.environ.get(KEY, "").strip()
    return plain | {"Authorization": f"Bearer {key}"} if key else plain


def endpoint(url: str) -> str:
    """Return the URL of the embeddings endpoint below *url*, the base of an API.  Raises EmbedderError if it is invalid."""
    if not is_url(url):
        raise EmbedderError("the URL of the embedder does not begin with http:// or https://", is_down=True)
    url = url.strip().rstrip("/")
    return url if url.endswith("/embeddings") else f"{url}/embeddings"


def is_url(url: str) -> bool:
    """True if *url* is valid for an embedder: http or https, with a host, without query and fragment."""
    try:
        parts = urlsplit(url.strip())
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query and not parts.fragment
    except ValueError:
        return False


def refused(response: Response) -> EmbedderError:
    """Return the error for *response*, whose status is not 200, with the beginning of its body as the reason."""
    status = response.status
    words = " ".join(response.body[:LONGEST_REASON].decode(errors="replace").split())
    reason = f"the embedder returns {status}{': ' if words else ''}{words}"
    if status in ABOUT_THE_TEXT:
        return EmbedderError(reason, is_about_text=True)
    if 300 <= status < 400:
        reason = f"the embedder returns {status}, a redirect, which is not followed"
    try:
        seconds = float(response.retry_after)
    except ValueError:
        seconds = nan
    retry_after = min(max(seconds, 1.0), LONGEST_PAUSE) if isfinite(seconds) else None
    # A status of 500 may be due to this text; all others concern every text.
    return EmbedderError(reason, is_down=status != 500, retry_after=retry_after)


def name_in(answer: Any) -> str:
    """Return the name of the model in *answer*; "" without one."""
    name = answer.get("model")
    return encodable(name[:LONGEST_REASON].replace("\0", "")) if isinstance(name, str) else ""


def encodable(text: str) -> str:
    """Return *text* with a question mark for each surrogate, which UTF-8 cannot encode."""
    return text.encode(errors="replace").decode()


def vectors_in(answer: Any, count: int) -> list[Vector]:
    """Return the *count* vectors in *answer*, in order of their index, scaled to length 1.

    Raises EmbedderError if *answer* has no such vectors.
    """
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or len(data) != count or not all(isinstance(item, dict) for item in data):
        raise EmbedderError(f"the response of the embedder does not contain {count} vectors", is_down=True)
    places = [item.get("index", number) for number, item in enumerate(data)]
    if not all(isinstance(place, int) for place in places):
        raise EmbedderError("the response of the embedder contains an index that is not a number", is_down=True)
    by_index = {place: item.get("embedding") for place, item in zip(places, data, strict=True)}
    vectors = [unit_vector(by_index.get(number)) for number in range(count)]
    if len({len(vector) for vector in vectors}) != 1:
        raise EmbedderError("the embedder returned vectors of different dimensions", is_down=True)
    return vectors


def unit_vector(values: Any) -> Vector:
    """Return *values* scaled to length 1.  Raises EmbedderError if they are no vector of finite numbers, or all zero."""
    if not isinstance(values, list) or not 0 < len(values) <= MOST_DIMENSIONS:
        raise EmbedderError("the response of the embedder contains no vector", is_down=True)
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        raise EmbedderError("the embedder returned a vector with a value that is not a number", is_down=True)
    try:
        length = hypot(*values)
    except OverflowError:
        length = float("inf")
    if not isfinite(length) or not length:
        raise EmbedderError("the embedder returned a vector with NaN, infinity or only zeros", is_down=True)
    return [value / length for value in values]
