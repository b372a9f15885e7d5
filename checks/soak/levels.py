"""Whether memory and tables of a long soak level off.

The rule: the median of the last quarter of the run is compared with that of the quarter before.  The difference, as per cent
of an hour, must be below a limit.  Medians ignore the short peaks of a rebuild and of a pack.
"""

from collections.abc import Iterable
from collections.abc import Sequence
from statistics import median
from typing import Any


#: Seconds from which a run is judged: in shorter ones caches are still filling.
JUDGED_SECONDS = 3600
#: Most per cent of an hour by which a value may rise.
LIMITS = {"memory": 10.0, "bytes": 20.0}
#: Tables that are not judged: without history, zodb-pgjsonb adds a row for each transaction, and no pack removes one.
GROWING = ("transaction_log",)
#: Bytes from which a table is judged; the pages of a smaller one say nothing.
SMALL = 1 << 20
MEBI = 1 << 20
#: Number of points of a stored series.
POINTS = 200
#: The name of all small tables, and of all other classes.
OTHERS = "others"
#: Number of classes of objects that have a series: those with the most bytes at the end.
MOST_CLASSES = 8
#: The figures of a series.
COLUMNS = ("start", "half", "end", "most", "per_hour")

#: Second of the run, and value.
Point = tuple[float, float]


def per_hour(points: Sequence[Point], seconds: float) -> float:
    """Return the per cent of an hour by which the value of *points* rises at the end of a run of *seconds*."""
    third = [value for second, value in points if seconds / 2 <= second < seconds * 3 / 4]
    last = [value for second, value in points if second >= seconds * 3 / 4]
    if not third or not last or not median(third):
        return 0.0
    return (median(last) / median(third) - 1) * 100 * 3600 / (seconds / 4)


def thinned(points: Sequence[Point], seconds: float, number: int = POINTS) -> list[Point]:
    """Return at most *number* points: the medians of equal parts of the run."""
    parts: dict[int, list[Point]] = {}
    for point in points:
        parts.setdefault(min(int(point[0] * number / seconds), number - 1), []).append(point)
    return [(round(median(s for s, _ in part)), median(v for _, v in part)) for _, part in sorted(parts.items())]


def series(memory: dict[str, list[Point]], samples: Sequence[dict[str, Any]], started: float) -> dict[str, Any]:
    """Return kind -> name -> points: ``memory``, ``bytes`` of tables and of ``states`` of a class in MiB, and ``counts``.

    Tables that are small all the time are one, OTHERS, as are all but the largest classes.
    """
    found: dict[str, dict[str, list[Point]]] = {"memory": {}, "bytes": {}, "states": {}, "counts": {}}
    for name, points in memory.items():
        found["memory"][name] = [(time - started, round(value / MEBI, 1)) for time, value in points]
    own = {name for sample in samples for name, size in sample["bytes"].items() if size >= SMALL or name in GROWING}
    last = samples[-1]["states"] if samples else {}
    classes = set(sorted(last, key=lambda name: last[name])[-MOST_CLASSES:])
    for sample in samples:
        second = sample["time"] - started
        for kind, names in (("bytes", own), ("states", classes)):
            sizes = dict.fromkeys([*sorted(names), OTHERS], 0)
            for name, size in sample[kind].items():
                sizes[name if name in names else OTHERS] += size
            for name, size in sizes.items():
                found[kind].setdefault(name, []).append((second, round(size / MEBI, 3)))
        counts = {name: sample[name] for name in ("waiting", "failed", "objects", "connections")}
        counts |= {"dead rows": sum(sample["dead"].values()), "indexes of objects, MiB": sample["indexes"] / MEBI}
        for name, number in counts.items():
            found["counts"].setdefault(name, []).append((second, number))
    return found


def summary(found: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return the thinned series, and for each the values at ``start``, ``half`` and ``end``, the ``most``, and ``per_hour``."""
    levels: dict[str, Any] = {kind: {} for kind in found}
    for kind, by_name in found.items():
        for name, points in sorted(by_name.items()):
            levels[kind][name] = {
                "start": middle_of(points, 0.0, seconds / 20),
                "half": middle_of(points, seconds * 0.475, seconds * 0.525),
                "end": middle_of(points, seconds * 0.95, seconds * 1.05),
                "most": max(value for _, value in points),
                "per_hour": round(per_hour(points, seconds), 1),
                "points": thinned(points, seconds),
            }
    return levels


def middle_of(points: Sequence[Point], begin: float, end: float) -> float:
    """Return the median of the values from *begin* to *end*, 0 if there are none."""
    values = [value for second, value in points if begin <= second <= end]
    return round(median(values), 3) if values else 0.0


def broken(levels: dict[str, Any], seconds: float, restarted: Iterable[str] = ()) -> list[str]:
    """Return a line for each value that does not level off; the memory of *restarted* processes is not judged."""
    if seconds < JUDGED_SECONDS:
        return []
    lines = []
    for kind, limit in LIMITS.items():
        for name, figures in levels[kind].items():
            is_small = kind == "bytes" and figures["end"] * MEBI < SMALL
            if name not in (*restarted, *GROWING) and not is_small and figures["per_hour"] > limit:
                lines.append(
                    f"{kind} of {name} rises by {figures['per_hour']:.0f} % of an hour, more than {limit:.0f} %"
                )
    return lines
