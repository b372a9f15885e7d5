"""Command line; see README.md."""

from checks.plone_suites import results
from checks.plone_suites.compare import compare
from checks.plone_suites.compare import load_bound
from checks.plone_suites.compare import markdown
from checks.plone_suites.compare import regressions
from checks.plone_suites.driver import Options
from checks.plone_suites.driver import run_suite
from checks.plone_suites.driver import select
from checks.plone_suites.job import BAD
from checks.plone_suites.page import page
from collections.abc import Iterator
from concurrent.futures import as_completed
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from tests.conftest import memory_folder
from typing import Any

import argparse
import sys


PROGRAM = "python -m checks.plone_suites"
OUR_PROFILE = "plone.pgcatalog:default"


def parsed(task: str, argv: list[str]) -> argparse.Namespace:
    """Return the arguments of ``run``, ``check`` (a run that is compared with the stored controls) or ``compare``."""
    parser = argparse.ArgumentParser(prog=PROGRAM if task == "run" else f"{PROGRAM} {task}")
    add = parser.add_argument
    if task == "compare":
        add("candidate", type=Path)
        add("--control", type=Path, help="result file; by default those kept here")
    else:
        default = None if task == "run" else OUR_PROFILE
        add("--profile", required=task == "run", default=default, help="GenericSetup profile, or none for the control")
        suites = "of suites.json, quick, medium, all, only:tier or module:dotted.name"
        add("--suite", action="append", required=True, help=suites)
        add("--out", type=Path, help="JSON result file; an existing one is added to")
        add("--jobs", type=int, default=1, help="suites to run side by side")
        add("--dsn", help="superuser DSN of a server to use instead of an embedded one")
        add("--test-timeout", type=float, default=Options.test_timeout, metavar="SECONDS")
        add("--suite-timeout", type=float, default=Options.suite_timeout, metavar="SECONDS")
    if task == "run":
        add("--compact", action="store_true", help="write only the status of each test")
        add("--only", help="regular expression on the test id")
        add(
            "--failed-in",
            type=lambda path: results.load(Path(path)),
            help="run only the tests that failed in this result file",
        )
    else:
        add("--markdown", type=Path, help="write the report to this file")
        add("--page", type=Path, help="write the page of the documentation to this file")
        add("--command", help="what to name on that page as the command that makes it")
        parser.set_defaults(compact=False, only=None, failed_in=None)
    return parser.parse_args(argv)


def judge(candidate: dict[str, Any], args: argparse.Namespace, control: dict[str, Any] | None = None) -> int:
    """Report *candidate* next to *control*; return 1 if a difference counts against it."""
    control = control or results.stored_controls()
    comparisons = compare(control, candidate, load_bound())
    report = markdown(comparisons)
    if args.markdown:
        args.markdown.write_text(report)
    if args.page:
        command = args.command or f"{PROGRAM} {' '.join(sys.argv[1:])}"
        args.page.write_text(page(comparisons, candidate, command), "utf-8")
    print(report)
    unjudged = sorted(candidate["suites"].keys() - control["suites"].keys())
    for name in unjudged:
        print(f"{name} is not in the control")
    return 0 if comparisons and not unjudged and all(suite.passed for suite in comparisons) else 1


def run(args: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Run suites; return the result, and True if every test was run and none failed."""
    try:
        suites = select(args.suite)
    except KeyError as exc:
        sys.exit(f"no suite {exc}: see suites.json")
    profile = None if args.profile == "none" else args.profile
    result = results.load(args.out) if args.out and args.out.exists() else results.new(profile)
    if result["profile"] != args.profile:
        sys.exit(f"{args.out} is the result of another profile: {result['profile']}")
    passed = True
    with server(args.dsn) as dsn, ThreadPoolExecutor(args.jobs) as pool:
        options = Options(
            profile=profile,
            dsn=dsn,
            only=args.only,
            failed_in=args.failed_in,
            test_timeout=args.test_timeout,
            suite_timeout=args.suite_timeout,
        )
        running = {pool.submit(run_suite, name, spec, options): name for name, spec in suites.items()}
        for future in as_completed(running):
            name, record = running[future], future.result()
            print(summary(name, record), flush=True)
            result["suites"][name] = record
            passed = passed and not is_bad(record)
            if args.out:
                results.save(results.compact(result) if args.compact else result, args.out)
    return result, passed


def check(args: argparse.Namespace) -> int:
    """Run suites and compare them; return 1 if a difference counts.

    Tests that fail with the candidate alone run again with the control: some fail on certain days, or hours, with both.
    """
    candidate, _passed = run(args)
    control = results.stored_controls()
    suspects = regressions(compare(control, candidate, load_bound()))
    if suspects["suites"]:
        of_control = {"profile": "none", "suite": list(suspects["suites"]), "failed_in": suspects, "out": None}
        control = results.updated(control, run(argparse.Namespace(**vars(args) | of_control))[0])
    return judge(candidate, args, control)


@contextmanager
def server(dsn: str | None) -> Iterator[str]:
    """Yield the DSN of a running server: *dsn*, or that of an embedded one."""
    if dsn:
        yield dsn
        return
    with EmbeddedPostgres(settings=TEST_SETTINGS, temp_dir=memory_folder()) as postgres:
        yield postgres.dsn()


def is_bad(record: dict[str, Any]) -> bool:
    """Return whether a test failed, or not all were run."""
    return bool(record["exit"] or record["problems"] or record["counts"].keys() & set(BAD))


def summary(name: str, record: dict[str, Any]) -> str:
    """Return a line about a suite, and one for each problem that is not a failed test."""
    counts = ", ".join(f"{number} {status}" for status, number in sorted(record["counts"].items()))
    lines = [
        f"{name}: {record['collected']} tests, {counts or 'none run'}, {record['seconds']} s, "
        f"{record['restarts']} restarts, {', '.join(record['catalog'])}"
    ]
    lines += [f"    {line}" for problem in record["problems"] for line in _describe(problem)]
    return "\n".join(lines)


def _describe(problem: dict[str, str]) -> list[str]:
    """Return the most informative lines: all of a worker's log, the last one of a traceback."""
    if "log" in problem:
        return problem["log"].splitlines()
    (kind, name), *_err = problem.items()
    return [f"{kind} {name}: {problem['err'].strip().splitlines()[-1]}"]


def main(argv: list[str]) -> int:
    """Run, check or compare; return 1 if a test failed or was not run, or if a difference counts against the candidate."""
    task = argv[0] if argv and argv[0] in ("compare", "check") else "run"
    args = parsed(task, argv if task == "run" else argv[1:])
    if task == "compare":
        return judge(results.load(args.candidate), args, results.load(args.control) if args.control else None)
    return check(args) if task == "check" else int(not run(args)[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
