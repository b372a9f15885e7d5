"""The soak's observations as figures, the broken promises, and both as text."""

from checks.soak import monitor
from checks.soak.clients import Answer
from checks.soak.clients import SILENT
from checks.soak.clients import WRITES
from checks.soak.probe import KINDS
from checks.soak.server import bound
from collections import Counter
from collections.abc import Iterable
from collections.abc import Sequence
from statistics import fmean
from statistics import median
from statistics import quantiles
from typing import Any


#: Shorter runs show nothing about memory: caches are still filling.
MEMORY_SECONDS = 300
MEBI = 1 << 20


def summary(result: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a run, ready for JSON; ``broken`` are the promises it did not fulfil."""
    answers, outages, options = result["answers"], result["outages"], result["options"]
    shadows = [(begin, up + result["grace"]) for begin, up in outages]
    report = {
        "command": command(options),
        "versions": result["versions"],
        "settings": result["settings"],
        "options": options,
        "grace_seconds": result["grace"],
        "requests": len(answers),
        "kinds": kinds([a for a in answers if not a.error and not in_outage(a, shadows)]),
        "errors": errors(answers, shadows),
        "errors_outside": [
            {"at": round(a.start - result["started"], 1), "seconds": round(a.end - a.start, 1), "kind": a.kind}
            for a in answers
            if a.error and not a.repeated and not in_outage(a, shadows)
        ],
        "repeated": sum(a.repeated for a in answers),
        "outages": [{"at": round(b - result["started"], 1), "down": round(u - b, 1)} for b, u in outages],
        "seconds_without_answers": result["seconds_without_answers"],
        "lost_by_failovers": result["lost_by_failovers"],
        "compared_answers": result["compared_answers"],
        "acknowledged_writes": sum(a.kind in WRITES and not a.error for a in answers),
        "stale": result["stale"],
        **result["checked"],
        "memory_mb": memory(result["memory"], result["started"], options["seconds"]),
        "connections": result["connections"],
        "connections_bound": bound(options["threads"]),
        "problems": result["problems"],
    }
    return report | {"broken": broken(report)}


def in_outage(answer: Answer, shadows: list[tuple[float, float]]) -> bool:
    return any(answer.start <= end and answer.end >= begin for begin, end in shadows)


def command(options: dict[str, Any]) -> str:
    """Return the command line of this run."""
    words = [f"--{name.replace('_', '-')} {value}" for name, value in options.items() if not isinstance(value, bool)]
    flags = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is True]
    return " ".join(["python -m checks.soak", *words, *flags])


def mark(options: dict[str, Any]) -> str:
    """Return the name of the tables' place in the page."""
    if not options["failovers"]:
        return "soak"
    return "synchronous failovers" if options["synchronous"] else "failovers"


def kinds(answers: list[Answer]) -> dict[str, dict[str, float]]:
    """Return count and latencies in milliseconds of each kind of request."""
    by_kind: dict[str, list[float]] = {}
    for answer in answers:
        by_kind.setdefault(answer.kind, []).append((answer.end - answer.start) * 1000)
    return {kind: latencies(times) for kind, times in sorted(by_kind.items())}


def latencies(times: list[float]) -> dict[str, float]:
    cuts = quantiles(times, n=100, method="inclusive") if len(times) > 1 else times * 99
    return {"count": len(times), **{f"p{n}": round(cuts[n - 1], 1) for n in (50, 95, 99)}}


def errors(answers: list[Answer], shadows: list[tuple[float, float]]) -> dict[str, dict[str, int]]:
    """Return class -> number inside and outside of outages, without errors after which a client has repeated the request."""
    found: dict[str, Counter[str]] = {}
    for answer in answers:
        if answer.error and not answer.repeated:
            where = "inside" if in_outage(answer, shadows) else "outside"
            found.setdefault(answer.error, Counter(inside=0, outside=0))[where] += 1
    return {name: dict(counts) for name, counts in sorted(found.items())}


def memory(samples: dict[str, list[tuple[float, int]]], started: float, seconds: float) -> dict[str, dict[str, int]]:
    """Return name -> MiB when warm, in the middle and at the end, each the mean of a twentieth of the run."""
    width = max(seconds / 20, 3 * monitor.INTERVAL)
    times = {"start": min(30.0, seconds / 4), "middle": seconds / 2, "end": seconds - width}
    return {
        name: {when: _mean(values, started + at, width) for when, at in times.items()}
        for name, values in samples.items()
    }


def _mean(values: list[tuple[float, int]], begin: float, width: float) -> int:
    window = [size for time, size in values if begin <= time <= begin + width] or [values[-1][1]]
    return round(fmean(window) / MEBI)


def broken(report: dict[str, Any]) -> list[str]:
    """Return a line for each promise that *report* breaks."""
    options = report["options"]
    lines = [f"outside of an outage: {n['outside']} × {name}" for name, n in report["errors"].items() if n["outside"]]
    if inside := report["errors"].get(SILENT, {}).get("inside"):
        lines.append(f"in an outage: {inside} × {SILENT}")
    for name in ("lost", "phantom", "stale", "differences", "problems"):
        lines += [f"{name}: {line}" for line in report[name]]
    if len(report["outages"]) != (options["failovers"] or options["kills"]):
        lines.append(f"{len(report['outages'])} outages instead of {options['failovers'] or options['kills']}")
    for name, count in report["connections"].items():
        allowed = report["connections_bound"] if name in report["memory_mb"] else options["processes"]
        if count > allowed:
            lines.append(f"{name}: {count} connections, more than {allowed}")
    if options["seconds"] >= MEMORY_SECONDS:
        for name, sizes in report["memory_mb"].items():
            growth = (sizes["end"] / sizes["middle"] - 1) * 100
            if growth > options["max_growth"]:
                lines.append(f"{name}: memory grew by {growth:.0f} % from the middle to the end")
    return lines


# -- as text


def text(report: dict[str, Any]) -> str:
    """Return the tables and the verdict, as Markdown."""
    verdict = [f"- BROKEN: {line}" for line in report["broken"]] or ["All promises were fulfilled."]
    return "\n".join([*tables(report), "", *verdict])


def tables(report: dict[str, Any]) -> list[str]:
    """Return the Markdown tables of *report*."""
    versions = report["versions"]
    down = [outage["down"] for outage in report["outages"]]
    outages: list[tuple[str, Any]] = [("kills of PostgreSQL", len(down))]
    if report["options"]["failovers"]:
        synchronous = report["options"]["synchronous"]
        standby = "a synchronous standby" if synchronous else "a standby that lacked commits"
        allowed = "" if synchronous else ", which is allowed"
        outages = [
            (f"failovers to {standby}", len(down)),
            (f"acknowledged writes they lost{allowed}", len(report["lost_by_failovers"])),
            ("answers compared with SQL", report["compared_answers"]),
            *((f"without an answer to {kind}s", spread(report, kind)) for kind in KINDS),
        ]
    lines = [
        f"`{report['command']}`, Python {versions['python']}, PostgreSQL {versions['postgresql']}",
        "",
        *table(
            ("", ""),
            [
                ("requests", report["requests"]),
                ("acknowledged writes", report["acknowledged_writes"]),
                ("writes repeated by a client after a conflict", report["repeated"]),
                *outages,
                ("down, shortest to longest", f"{min(down)} to {max(down)} s" if down else ""),
                ("forgiven after each", f"{report['grace_seconds']} s"),
                ("written objects compared at the end", report["compared"]),
                ("lost", len(report["lost"])),
                ("phantom", len(report["phantom"])),
                ("stale answers meanwhile", len(report["stale"])),
                ("objects verified at the end", report["verified"]),
                ("differences of catalog and content", len(report["differences"])),
                ("errors outside of outages", sum(n["outside"] for n in report["errors"].values())),
            ],
        ),
        "",
        *table(
            ("requests outside of outages", "count", "p50 ms", "p95 ms", "p99 ms"),
            [(kind, n["count"], n["p50"], n["p95"], n["p99"]) for kind, n in report["kinds"].items()],
        ),
        "",
        *table(
            ("errors", "in outages", "outside"),
            [(name, n["inside"], n["outside"]) for name, n in report["errors"].items()],
        ),
        "",
        *table(
            ("process", "MiB when warm", "middle", "end", "connections at most", "allowed"),
            [
                (name, *(sizes.values()), report["connections"].get(name, 0), report["connections_bound"])
                for name, sizes in report["memory_mb"].items()
            ],
        ),
    ]
    return lines


def spread(report: dict[str, Any], kind: str) -> str:
    """Return the time that failovers left requests of *kind* without an answer: shortest, median, longest."""
    seconds = sorted(silent[kind] for silent in report["seconds_without_answers"])
    return f"{seconds[0]:.1f} to {seconds[-1]:.1f} s, median {median(seconds):.1f}" if seconds else ""


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return a Markdown table."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return [f"| {' | '.join(str(cell) for cell in row)} |" for row in (head, rule, *rows)]
