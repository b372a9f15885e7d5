"""The soak's observations as figures, the broken promises, and both as text."""

from checks.soak import levels
from checks.soak import mixed
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
#: Options that a mixed run derives from its length.
DERIVED = ("kills", "failovers", "synchronous")
#: Processes that a mixed run kills.
RESTARTED = ("work",)


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
    if options.get("mixed"):
        report |= of_mixture(result, shadows)
    return report | {"broken": broken(report)}


def of_mixture(result: dict[str, Any], shadows: list[tuple[float, float]]) -> dict[str, Any]:
    """Return the further figures of a mixed run."""
    observed, started = result["mixed"], result["started"]
    failures = [
        {
            "kind": failure["kind"],
            "at": round(failure["start"] - started, 1),
            "error": failure["error"],
            "in_outage": overlaps(failure["start"], failure["end"], shadows),
        }
        for failure in observed["failures"]
    ]
    found = levels.series(result["memory"], result["samples"], started)
    return observed | {"failures": failures, "levels": levels.summary(found, result["options"]["seconds"])}


def in_outage(answer: Answer, shadows: list[tuple[float, float]]) -> bool:
    return overlaps(answer.start, answer.end, shadows)


def overlaps(start: float, end: float, shadows: list[tuple[float, float]]) -> bool:
    return any(start <= last and end >= first for first, last in shadows)


def command(options: dict[str, Any]) -> str:
    """Return the command line of this run."""
    given = {name: value for name, value in options.items() if not (options.get("mixed") and name in DERIVED)}
    words = [f"--{name.replace('_', '-')} {value}" for name, value in given.items() if not isinstance(value, bool)]
    flags = [f"--{name.replace('_', '-')}" for name, value in given.items() if value is True]
    return " ".join(["python -m checks.soak", *words, *flags])


def mark(options: dict[str, Any]) -> str:
    """Return the name of the tables' place in the page."""
    if options.get("mixed"):
        return "mixed"
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
    if len(report["outages"]) != (expected := outages_of(options)):
        lines.append(f"{len(report['outages'])} outages instead of {expected}")
    for name, count in report["connections"].items():
        if count > (allowed := connections_allowed(report, name)):
            lines.append(f"{name}: {count} connections, more than {allowed}")
    if options.get("mixed"):
        return lines + broken_by_mixture(report)
    if options["seconds"] >= MEMORY_SECONDS:
        for name, sizes in report["memory_mb"].items():
            growth = (sizes["end"] / sizes["middle"] - 1) * 100
            if growth > options["max_growth"]:
                lines.append(f"{name}: memory grew by {growth:.0f} % from the middle to the end")
    return lines


def outages_of(options: dict[str, Any]) -> int:
    """Return the number of outages that a run with *options* has."""
    if options.get("mixed"):
        often = mixed.counts(options["seconds"])
        return sum(often[kind] for kind in mixed.OUTAGES)
    return int(options["failovers"] or options["kills"])


def connections_allowed(report: dict[str, Any], name: str) -> int:
    """Return the maximal number of connections with the application name *name*."""
    options = report["options"]
    if options.get("mixed") and name in (f"zope{options['processes']}", *RESTARTED):
        return mixed.POOL_SIZE
    if name in report["memory_mb"]:
        return int(report["connections_bound"])
    # One of each purpose in each process: the Zopes, and in a mixed run the worker and two commands.
    return int(options["processes"]) + (3 if options.get("mixed") else 0)


def broken_by_mixture(report: dict[str, Any]) -> list[str]:
    """Return a line for each promise that a mixed run breaks besides the others."""
    failed = Counter(
        f"{failure['kind']} failed outside of an outage: {failure['error'].splitlines()[-1]}"
        for failure in report["failures"]
        if not failure["in_outage"] and not failure["error"].startswith(mixed.PACK_CONFLICT)
    )
    lines = [f"{number} × {line}" for line, number in failed.items()]
    lines += [f"left: {line}" for line in report["left"]]
    done = Counter(event["kind"] for event in report["events"])
    # Without an upload there is no process that reads files.
    expected = [kind for kind in mixed.PERIODS if kind != "reader" or "upload" in report["kinds"]]
    lines += [f"no {kind} in this run" for kind in expected if not done[kind]]
    return lines + levels.broken(report["levels"], report["options"]["seconds"], RESTARTED)


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
    if report["options"].get("mixed"):
        outages = [
            ("outages", len(down)),
            ("answers compared with SQL after failovers", report["compared_answers"]),
            *((f"without an answer to {kind}s at a failover", spread(report, kind)) for kind in KINDS),
        ]
    elif report["options"]["failovers"]:
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
                (name, *(sizes.values()), report["connections"].get(name, 0), connections_allowed(report, name))
                for name, sizes in report["memory_mb"].items()
            ],
        ),
    ]
    return lines + (tables_of_mixture(report) if report["options"].get("mixed") else [])


def tables_of_mixture(report: dict[str, Any]) -> list[str]:
    """Return the further Markdown tables of a mixed run."""
    failures = Counter(failure["kind"] for failure in report["failures"])
    by_kind: dict[str, list[float]] = {}
    for event in report["events"]:
        by_kind.setdefault(event["kind"], []).append(event["end"] - event["begin"])
    chosen = {
        "memory": ("memory of {}, MiB", sorted(report["levels"]["memory"])),
        "bytes": ("table {}, MiB", sorted(report["levels"]["bytes"])),
        "states": ("objects of {}, MiB", sorted(report["levels"]["states"])),
        "counts": ("{}", sorted(report["levels"]["counts"])),
    }
    rows = [
        (title.format(name), *(report["levels"][kind][name][column] for column in levels.COLUMNS))
        for kind, (title, names) in chosen.items()
        for name in names
    ]
    return [
        "",
        *table(
            ("event", "number", "longest, s", "attempts that failed"),
            [(kind, len(times), round(max(times), 1), failures[kind]) for kind, times in sorted(by_kind.items())],
        ),
        "",
        *table(("", "start", "half", "end", "most", "% of an hour"), rows),
    ]


def spread(report: dict[str, Any], kind: str) -> str:
    """Return the time that failovers left requests of *kind* without an answer: shortest, median, longest."""
    seconds = sorted(silent[kind] for silent in report["seconds_without_answers"])
    return f"{seconds[0]:.1f} to {seconds[-1]:.1f} s, median {median(seconds):.1f}" if seconds else ""


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return a Markdown table."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return [f"| {' | '.join(str(cell) for cell in row)} |" for row in (head, rule, *rows)]
