#!/usr/bin/env python3
"""Plants bugs in the runtime, one at a time, and sees that a test finds each.

The bugs are the rows of src/base/mutants.def; a build with HOLDFAST_MUTANTS (the preset `controlled`) has them
all, and HOLDFAST_MUTANT=name switches one on. A mutant is killed when one of the suites of its row fails,
crashes or does not end. One that survives means that a test is missing: the exit status is then 1.

The mutants of the checker of kernels, which needs the compiler, are those of the suite `checker`, a program of the
release build (test-checker): --checker runs them instead of the others.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROW = re.compile(r'^MUTANT\((\w+), "([^"]*)", "([^"]*)"\)$')


def read_mutants():
    """[(name, meaning, suites)] of mutants.def; a line that looks like a row and is none is an error."""
    mutants = []
    for line in (ROOT / "src/base/mutants.def").read_text().splitlines():
        row = ROW.match(line)
        if row:
            mutants.append((row[1], row[2], row[3].split()))
        elif line.startswith("MUTANT"):
            sys.exit(f"mutants: cannot read this line of mutants.def: {line}")
    return mutants


def run_suite(folder, suite, mutant, timeout):
    """How the suite ended under the mutant: "" when it passed."""
    environment = dict(os.environ, HOLDFAST_CACHE_DIR=str(folder / "mutants-cache"))
    environment.pop("HOLDFAST_TEST_LONG", None)  # a mutant must not need the long tests
    if mutant:
        environment["HOLDFAST_MUTANT"] = mutant
    command = [str(folder / "bin" / f"test-{suite}"), "--abort-after=1", "--no-version", "--no-intro"]
    # A group of its own: a test that is stopped leaves no children behind.
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True)
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return "does not end"
    if process.returncode == 0:
        return ""
    case = re.search(r"^TEST CASE:\s*(.*)$", output, re.MULTILINE)
    how = f"signal {-process.returncode}" if process.returncode < 0 else "fails"
    return f"{how}: {case[1]}" if case else how


def find_killer(folder, mutant, suites, timeout):
    """(suite, how it ended) of the first suite that notices; None when all pass."""
    for suite in suites:
        how = run_suite(folder, suite, mutant, timeout)
        if how:
            return suite, how
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only these mutants")
    parser.add_argument("--checker", action="store_true", help="the mutants of the checker of kernels")
    parser.add_argument("--build", help="folder of the build (default: build/controlled, with --checker build/release)")
    parser.add_argument("--sample", type=int, metavar="N",
                        help="only N of them, evenly spread; all of them when HOLDFAST_TEST_LONG is set")
    parser.add_argument("--all-suites", action="store_true", help="try the other suites, too, before a mutant has survived")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at a time (default: the processors)")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one suite (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="print the mutants and end")
    arguments = parser.parse_args()

    mutants = read_mutants()
    if arguments.list:
        for name, meaning, suites in mutants:
            print(f"{name:34}{meaning} ({', '.join(suites)})")
        return 0
    preset = "release" if arguments.checker else "controlled"
    build = arguments.build or f"build/{preset}"
    mutants = [mutant for mutant in mutants if (mutant[2] == ["checker"]) == arguments.checker]
    all_suites = sorted({suite for _, _, suites in mutants for suite in suites})
    unknown = set(arguments.names) - {name for name, _, _ in mutants}
    if unknown:
        sys.exit(f"mutants: there is no mutant {', '.join(sorted(unknown))} of {build}; --list names them")
    if arguments.names:
        mutants = [mutant for mutant in mutants if mutant[0] in arguments.names]
    elif arguments.sample and not os.environ.get("HOLDFAST_TEST_LONG"):
        mutants = mutants[:: max(1, len(mutants) // arguments.sample)][: arguments.sample]

    folder = (ROOT / build).resolve()
    for suite in all_suites:
        if not (folder / "bin" / f"test-{suite}").exists():
            sys.exit(f"mutants: {build} has no test-{suite}; cmake --preset {preset}, then build it")
    # What fails without a mutant kills none.
    for suite in sorted({suite for _, _, suites in mutants for suite in suites}):
        how = run_suite(folder, suite, None, arguments.timeout)
        if how:
            sys.exit(f"mutants: test-{suite} does not pass without a mutant: {how}")

    def judge(mutant):
        name, meaning, suites = mutant
        others = [suite for suite in all_suites if suite not in suites] if arguments.all_suites else []
        start = time.monotonic()
        return name, meaning, find_killer(folder, name, suites + others, arguments.timeout), time.monotonic() - start

    survivors = 0
    with concurrent.futures.ThreadPoolExecutor(max(1, arguments.jobs)) as pool:
        for name, meaning, killer, seconds in pool.map(judge, mutants):
            survivors += killer is None
            verdict = f"killed    {seconds:6.1f} s  {name:34}{killer[0]}: {killer[1]}" if killer else \
                      f"SURVIVED  {seconds:6.1f} s  {name:34}{meaning}"
            print(verdict, flush=True)
    print(f"{len(mutants) - survivors} of {len(mutants)} mutants killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
