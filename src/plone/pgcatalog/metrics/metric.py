"""One figure."""

from dataclasses import dataclass
from dataclasses import field


@dataclass(frozen=True)
class Metric:
    """A value with its Prometheus name, its kind (``gauge`` or ``counter``), one sentence of help, and its labels.

    *scope* is ``instance`` for what belongs to a process, ``global`` for what all processes share.
    """

    name: str
    value: float
    kind: str
    help: str
    labels: dict[str, str] = field(default_factory=dict)
    scope: str = "instance"
