#!/usr/bin/env python3
"""Compares the speed of two builds: what did a change cost?

  scripts/compare_benchmarks.py BEFORE AFTER [SUITE...]

BEFORE and AFTER are `holdfast` programs, or commits, which are built first, each in a worktree below build/compare. Each suite runs in
pairs, the two programs in turn (before after, after before, …), so that a machine that gets slower or faster meanwhile does so for both. The ratio
of a row is the median of the ratios of its pairs, time after to time before: above 1 is slower, also for rows that are rates.

The suites of rows that are more than 2 % slower are measured again, with as many pairs. A row that is again more than 2 % slower fails,
as does a geometric mean of all rows above 1.005: then the exit status is 1.

  scripts/compare_benchmarks.py --self-test       compare programs that are equal, slower, and slower by chance
"""

import argparse
import contextlib
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUITES = ["overhead", "retain", "elementwise", "reduce", "kernels", "capture", "validation"]
ROW_LIMIT = 1.02
MEAN_LIMIT = 1.005


def build(commit):
    """The program of a commit."""
    name = subprocess.run(["git", "-C", ROOT, "rev-parse", "--verify", "--short=12", commit + "^{commit}"], check=False,
                          capture_output=True, text=True)
    if name.returncode != 0:
        sys.exit(f"compare_benchmarks: {commit} is neither a program nor a commit")
    tree = ROOT / "build/compare" / name.stdout.strip()
    if not tree.exists():
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--detach", tree, name.stdout.strip()], check=True)
    settings = ["-DHOLDFAST_TESTS=OFF", "-DHOLDFAST_PYTHON=OFF"]
    subprocess.run(["cmake", "--preset", "release", *settings], cwd=tree, check=True, stdout=sys.stderr)
    subprocess.run(["cmake", "--build", "--preset", "release", "--target", "holdfast-tool"], cwd=tree, check=True, stdout=sys.stderr)
    return tree / "build/release/bin/holdfast"


def measure(program, suite, folder):
    """{(suite, row): (value, unit)} of one run; the value grows with the time that is needed."""
    result = pathlib.Path(folder) / "rows.json"
    done = subprocess.run([program, "bench", suite, "--quick", "--json", result], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"compare_benchmarks: {program} bench {suite} ended with {done.returncode}:\n{done.stderr}")
    rows = {}
    for row in json.loads(result.read_text())["rows"]:
        value, unit = row.get("value"), row["unit"]
        # A ratio (×) sums up other rows; not every row has a value on every machine.
        if not value or unit == "×":
            continue
        rows[suite, row["name"]] = (1 / value if unit.endswith("/s") else value, unit)
    return rows


class Comparison:
    """The rows of the suites, as often as there are pairs."""

    def __init__(self, before, after, suites, pairs):
        self.before, self.after, self.ratios = {}, {}, {}
        self.units = {}
        with tempfile.TemporaryDirectory() as folder:
            for pair in range(pairs):
                for suite in suites:
                    turns = [(before, self.before), (after, self.after)]
                    for program, values in turns if pair % 2 == 0 else reversed(turns):
                        for row, (value, unit) in measure(program, suite, folder).items():
                            values.setdefault(row, []).append(value)
                            self.units[row] = unit
                print(f"\r{pair + 1} of {pairs} pairs", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        for row, values in self.before.items():
            if len(self.after.get(row, [])) == len(values):
                self.ratios[row] = [a / b for a, b in zip(self.after[row], values)]

    def ratio(self, row):
        return statistics.median(self.ratios[row])

    def interval(self, row):
        """Where the true median lies with 95 % confidence, by order statistics."""
        ratios = sorted(self.ratios[row])
        middle, half = (len(ratios) - 1) / 2, 0.98 * math.sqrt(len(ratios))
        return ratios[max(0, round(middle - half))], ratios[min(len(ratios) - 1, round(middle + half))]

    def slow_rows(self):
        return [row for row in self.ratios if self.ratio(row) > ROW_LIMIT]

    def mean(self):
        return math.exp(statistics.fmean(math.log(self.ratio(row)) for row in self.ratios))

    def print_rows(self, rows):
        def shown(row, values):
            value, unit = statistics.median(values[row]), self.units[row]
            return f"{1 / value if unit.endswith('/s') else value:.4g} {unit}"

        for row in rows:
            suite, name = row
            low, high = self.interval(row)
            print(f"{suite:<12}{name:<60}{shown(row, self.before):>16}{shown(row, self.after):>16}"
                  f"{self.ratio(row):>8.3f}  {low:.3f} to {high:.3f}{'  slower' if self.ratio(row) > ROW_LIMIT else ''}")
        for row in sorted(self.before.keys() ^ self.after.keys()):
            print(f"{row[0]:<12}{row[1]:<60} only {'before' if row in self.before else 'after'}")


def compare(before, after, suites, pairs):
    """The exit status."""
    first = Comparison(before, after, suites, pairs)
    if not first.ratios:
        sys.exit("compare_benchmarks: the programs have no row in common")
    print(f"{'suite':<12}{'row':<60}{'before':>16}{'after':>16}{'ratio':>8}  95 % interval")
    first.print_rows(first.ratios)
    mean = first.mean()
    print(f"geometric mean of {len(first.ratios)} rows: {mean:.4f} (at most {MEAN_LIMIT})")
    confirmed = []
    if suspects := first.slow_rows():
        again = Comparison(before, after, sorted({suite for suite, _ in suspects}, key=suites.index), pairs)
        confirmed = [row for row in suspects if again.ratio(row) > ROW_LIMIT]
        print(f"measured again: {len(suspects)} rows above {ROW_LIMIT}, {len(confirmed)} of them confirmed")
        again.print_rows(suspects)
    return 1 if confirmed or mean > MEAN_LIMIT else 0


# --- self-test ---

FAKE = """#!/usr/bin/env python3
import json, pathlib, sys
runs = pathlib.Path(sys.argv[0] + ".runs")
run = int(runs.read_text()) if runs.exists() else 0
runs.write_text(str(run + 1))
slow = {slow}
rows = [{{"name": f"row {{i}}", "unit": "ns", "value": 100.0 + i}} for i in range(20)]
rows.append({{"name": "rate", "unit": "GB/s", "value": 50.0 / (slow if {rate} else 1)}})
rows.append({{"name": "sum", "unit": "×", "value": 50.0 * slow}})
rows[3]["value"] *= slow if not {rate} else 1
json.dump({{"rows": rows}}, open(sys.argv[-1], "w"))
"""

# (what the program after the change does, how much slower one row is in run number `run` of 3 + 3, a rate?, exit status)
CASES = [
    ("is equal", "1", False, 0),
    ("has a row that is 1 % slower", "1.01", False, 0),
    ("has a row that is 5 % slower", "1.05", False, 1),
    ("has a rate that is 5 % lower", "1.05", True, 1),
    ("has a row that is faster", "0.7", False, 0),
    ("has a row that was slower once", "1.5 if run == 1 else 1", False, 0),
    ("has a row that is not slow when measured again", "1.05 if run < 3 else 1", False, 0),
    ("has a row that spoils the mean, and is not slow when measured again", "1.5 if run < 3 else 1", False, 1),
]


def self_test():
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (what, slow, rate, expected) in enumerate(CASES):
            programs = []
            for name, slowness in (("before", "1"), ("after", slow)):
                program = pathlib.Path(folder) / f"{name}-{number}"
                program.write_text(FAKE.format(slow=slowness, rate=rate))
                program.chmod(0o755)
                programs.append(program)
            with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
                status = compare(*programs, ["overhead"], pairs=3)
            if status != expected:
                print(f"compare_benchmarks: a program that {what}: expected exit status {expected}, got {status}", file=sys.stderr)
                failures += 1
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", nargs="?", help="a program or a commit")
    parser.add_argument("after", nargs="?", help="a program or a commit")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"suites of `holdfast bench` (default: {' '.join(SUITES)})")
    parser.add_argument("--pairs", type=int, default=15, help="runs of each program (default: %(default)s)")
    parser.add_argument("--self-test", action="store_true", help="check this script")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if arguments.after is None:
        parser.error("two programs or commits are needed")
    programs = [pathlib.Path(one).resolve() if pathlib.Path(one).is_file() else build(one) for one in (arguments.before, arguments.after)]
    return compare(*programs, arguments.suites or SUITES, arguments.pairs)


if __name__ == "__main__":
    sys.exit(main())
