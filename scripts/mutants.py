#!/usr/bin/env python3
"""Plants bugs in the library, one at a time, and sees that a test finds each.

A mutant is a row of tests/mutants/AREA/mutants.def and a hunk of a patch beside it, tests/mutants/AREA/PATH.patch, that puts
`mutated(Mutant::name)` into PATH. All patches of an area together give a copy of the sources that has all of its mutants; the build
makes that copy and compiles it once, and HOLDFAST_MUTANT=name switches one on. The areas: `runtime`, in the preset `controlled`,
and `checker`, the checker of kernels, in the program test-checker of the preset `release`.

  mutants.py run [NAME...]           run the suites that should find them: a mutant is killed when one of these fails, crashes or
                                     does not end. One that survives means that a test is missing: the exit status is then 1
  mutants.py list                    the mutants, what is wrong with them, their suites
  mutants.py check                   every patch applies, each mutant has a row and a hunk, and production code has none
  mutants.py apply AREA DIR [PATH...]
                                     make or update the copy in DIR/tree, of the files that are patched and of PATH; writes what has
                                     changed only, and never over edits. --keep-going leaves out hunks that do not apply
  mutants.py extract [DIR]           write the patches anew from the copy in DIR, with its edits; without DIR the patches stay what
                                     they are, and get the context and the line numbers of today
  mutants.py self-test               see that lost, ambiguous and overlapping hunks are found

To add or change a mutant: build the preset, edit build/controlled/mutants/runtime/tree/PATH, build and run it there, then
`extract build/controlled/mutants/runtime`. When `check` says that a hunk does not apply, `apply --keep-going AREA DIR` makes a copy
without it, where it is put in by hand.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import mutant_patches as patches
from mutant_patches import PatchError

ROOT = pathlib.Path(__file__).resolve().parent.parent
AREAS = {"runtime": "controlled", "checker": "release"}  # and the preset that has them
ROW = re.compile(r'^MUTANT\((\w+), "([^"]*)", "([^"]*)"\)$')
# Added to each file of the copy, and to no patch.
INCLUDE = '#include "mutants.h"\n'


# --- what the repository says ---


def folder_of(area):
    return ROOT / "tests/mutants" / area


def read_mutants(area):
    """[(name, meaning, suites)] of an area; a line that looks like a row and is none is an error."""
    mutants = []
    path = folder_of(area) / "mutants.def"
    for line in path.read_text().splitlines():
        row = ROW.match(line)
        if row:
            mutants.append((row[1], row[2], row[3].split()))
        elif line.startswith("MUTANT"):
            raise PatchError(f"{path.relative_to(ROOT)}: cannot read this line: {line}")
    return mutants


def read_patches(area):
    """{path in the repository: hunks}"""
    found = {}
    for file in sorted(folder_of(area).rglob("*.patch")):
        name = str(file.relative_to(ROOT))
        path, hunks = patches.parse(file.read_text(), name)
        if file != folder_of(area) / (path + ".patch"):
            raise PatchError(f"{name}: it patches {path}, so it must be tests/mutants/{area}/{path}.patch")
        found[path] = hunks
    return found


def patched(area, path, hunks, leave_out=None):
    """The copy of a file."""
    if not (ROOT / path).exists():
        raise PatchError(f"tests/mutants/{area}/{path}.patch: there is no {path}")
    try:
        return INCLUDE + patches.apply(hunks, (ROOT / path).read_text(), leave_out)
    except PatchError as error:
        raise PatchError(f"tests/mutants/{area}/{path}.patch: {error}") from None


# --- the copy ---


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def write_changed(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def apply_area(area, out, more=(), keep_going=False):
    """DIR/tree has the copies, DIR/base what they were made of, DIR/made.json what was written."""
    record = out / "made.json"
    made = json.loads(record.read_text())["files"] if record.exists() else {}
    wanted, left_out = {}, []
    for path, hunks in ({path: [] for path in more} | read_patches(area)).items():
        leave_out = (lambda hunk, error, path=path: left_out.append(f"{path}: {error}")) if keep_going else None
        wanted[path] = patched(area, path, hunks, leave_out)
    for path, was in made.items():
        copy = out / "tree" / path
        if copy.exists() and digest(copy.read_text()) not in (was, digest(wanted.get(path, ""))):
            raise PatchError(f"{copy} was edited: `scripts/mutants.py extract {out}` keeps the edits, removing the file drops them")
    for path in set(made) - set(wanted):
        (out / "tree" / path).unlink(missing_ok=True)
        (out / "base" / path).unlink(missing_ok=True)
    for path, text in wanted.items():
        write_changed(out / "base" / path, (ROOT / path).read_text())
        write_changed(out / "tree" / path, text)
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps({"area": area, "files": {path: digest(text) for path, text in wanted.items()}}, indent=1))
    for line in left_out:
        print(f"mutants: left out: {line}", file=sys.stderr)
    return 1 if left_out else 0


def extract_from(out):
    """Edits of the copy against what it was made of, which may not be today's: `apply` finds their places again."""
    record = out / "made.json"
    made = json.loads(record.read_text())
    area = made["area"]
    for path in made["files"]:
        copy = (out / "tree" / path).read_text()
        if not copy.startswith(INCLUDE):
            raise PatchError(f"{out / 'tree' / path} must begin with {INCLUDE.strip()}")
        base = (out / "base" / path).read_text()
        patch = folder_of(area) / (path + ".patch")
        if copy == INCLUDE + base:
            patch.unlink(missing_ok=True)
        else:
            write_changed(patch, patches.text_of(path, patches.hunks_between(base, copy[len(INCLUDE) :])))
        made["files"][path] = digest(copy)
        record.write_text(json.dumps(made, indent=1))  # what is in the patches may be written over


def extract(out):
    if out:
        return extract_from(out)
    for area in AREAS:
        with tempfile.TemporaryDirectory() as folder:
            apply_area(area, pathlib.Path(folder))
            extract_from(pathlib.Path(folder))


# --- the check ---


def find_problems():
    problems = []
    for area in AREAS:
        rows = [name for name, _, _ in read_mutants(area)]
        problems += [f"tests/mutants/{area}/mutants.def: {name} is there twice" for name in sorted(set(rows)) if rows.count(name) > 1]
        named = {}
        for path, hunks in read_patches(area).items():
            for hunk in hunks:
                named |= {name: path for name in hunk.names()}
            try:
                patched(area, path, hunks, lambda hunk, error, path=path: problems.append(
                    f"tests/mutants/{area}/{path}.patch: {error}"))
            except PatchError as error:
                problems.append(str(error))
        problems += [f"tests/mutants/{area}/mutants.def: {name} is in no patch" for name in rows if name not in named]
        problems += [f"tests/mutants/{area}/{path}.patch: {name} is no row of mutants.def" for name, path in named.items() if name not in rows]
    for folder in ("src", "include"):
        for file in sorted((ROOT / folder).rglob("*.*")):
            if file.suffix in (".h", ".cpp") and re.search(r"\bmutated\(|\bMutant::", file.read_text()):
                problems.append(f"{file.relative_to(ROOT)}: production code has no mutants; they are patches")
    return problems


def check():
    problems = find_problems()
    for problem in problems:
        print(f"mutants: {problem}")
    counts = ", ".join(f"{len(read_mutants(area))} of {area}" for area in AREAS)
    print(f"mutants: {counts}; {len(problems)} problems{'; see Mutants in CONTRIBUTING.md' if problems else ''}")
    return 1 if problems else 0


def refusal(function, *arguments):
    """What is wrong, "" when nothing is."""
    try:
        function(*arguments)
    except PatchError as error:
        return str(error)
    return ""


def hunk_cases():
    base = "".join(f"line {i};\n" for i in range(30)) + "begin;\na;\nb;\nc;\nd;\ne;\n" * 2 + "end;\n"
    edited = base.replace("line 5;\n", "if (mutated(Mutant::five)) return;\nline 5;\n").replace(
        "line 20;\n", "if (!mutated(Mutant::twenty)) line 20;\n")
    hunks = patches.parse(patches.text_of("a.cpp", patches.hunks_between(base, edited)), "self-test")[1]
    other = patches.hunks_between(base, base.replace("line 19;\nline 20;\n", "other;\n"))
    between = base.replace("c;\n", "added;\nc;\n", 1)
    dense = re.sub("line (1.;)", r"added \1\nline \1", base)
    gone = "its lines are in no place"
    return {
        "patches are read as they were written": patches.apply(hunks, base) == edited,
        "hunks follow code that was moved": patches.apply(hunks, "new;\n" * 40 + base) == "new;\n" * 40 + edited,
        "hunks survive edits of their context":
            patches.apply(hunks, base.replace("line 4;", "other;")) == edited.replace("line 4;", "other;"),
        "a changed line that is gone is found":
            f"the hunk of twenty: {gone}" in refusal(patches.apply, hunks, base.replace("line 20;", "")),
        "context that is gone is found": f"the hunk of five: {gone}" in refusal(patches.apply, hunks, re.sub("line [3-6];", "other;", base)),
        "two places are found": "in several places" in refusal(patches.apply, hunks, base + base),
        "two hunks for one line are found": "it changes what" in refusal(patches.apply, hunks + hunks[:1], base),
        "hunks for lines that overlap are found": "it changes what" in refusal(patches.apply, hunks + other, base),
        "lines that are there twice get the context that tells them apart":
            patches.apply(patches.hunks_between(base, between), base) == between,
        "changes that are close share a hunk, which has two lines to be found by":
            all(len(hunk.old()) >= 2 for hunk in patches.hunks_between(base, dense)) and
            patches.apply(patches.hunks_between(base, dense), base) == dense,
    }


def tree_cases(root):
    """Of a repository with one source, in a folder."""
    source, definitions = root / "src/a.cpp", folder_of("runtime") / "mutants.def"
    patch, out = folder_of("runtime") / "src/a.cpp.patch", root / "build"
    copy = out / "tree/src/a.cpp"
    row = 'MUTANT(five, "meaning", "unit")\n'
    for file, text in ((source, "".join(f"line {i};\n" for i in range(30))), (definitions, row), (root / "include/b.h", ""),
                       (folder_of("checker") / "mutants.def", "")):
        write_changed(file, text)
    cases = {}

    def found(what, *expected):
        problems = find_problems()
        cases[what] = len(problems) == len(expected) and all(text in problem for text, problem in zip(expected, problems))

    found("a row without a hunk is found", "five is in no patch")
    apply_area("runtime", out, ["src/a.cpp"])
    write_changed(copy, copy.read_text().replace("line 5;\n", "if (!mutated(Mutant::five)) line 5;\n"))
    cases["a copy that was edited is not written over"] = "was edited" in refusal(apply_area, "runtime", out)
    write_changed(source, "first;\n" + source.read_text())
    extract(out)
    apply_area("runtime", out)
    cases["edits meet a source that was edited, too"] = (
        copy.read_text() == INCLUDE + source.read_text().replace("line 5;", "if (!mutated(Mutant::five)) line 5;"))
    found("a tree that is right is right")
    os.utime(copy, (1, 1))
    apply_area("runtime", out)
    cases["what has not changed is not written"] = copy.stat().st_mtime == 1
    write_changed(definitions, "")
    found("a hunk without a row is found", "five is no row")
    write_changed(definitions, row + row)
    found("a row that is there twice is found", "five is there twice")
    write_changed(definitions, row)
    write_changed(root / "include/b.h", "if (mutated(Mutant::five)) return;\n")
    found("a mutant in production code is found", "include/b.h: production code")
    write_changed(root / "include/b.h", "")
    text = source.read_text()
    write_changed(source, text.replace("line 5;\n", ""))
    found("a patch that does not apply is found", "the hunk of five")
    cases["and left out when that is asked for"] = (
        apply_area("runtime", out, keep_going=True) == 1 and copy.read_text() == INCLUDE + source.read_text())
    source.unlink()
    found("a patch of no source is found", "there is no src/a.cpp")
    write_changed(source, text)
    patch.rename(patch.with_name("b.cpp.patch"))
    cases["a patch with the name of another source is found"] = "it must be" in refusal(find_problems)
    return cases


def self_test():
    global ROOT
    cases = hunk_cases()
    with tempfile.TemporaryDirectory() as folder:
        ROOT = pathlib.Path(folder)
        cases |= tree_cases(ROOT)
    for what, is_right in cases.items():
        print(f"{'passed' if is_right else 'FAILED'}  {what}")
    return 0 if all(cases.values()) else 1


# --- running ---


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


def run(arguments):
    preset = AREAS[arguments.area]
    build = arguments.build or f"build/{preset}"
    mutants = read_mutants(arguments.area)
    all_suites = sorted({suite for _, _, suites in mutants for suite in suites})
    unknown = set(arguments.names) - {name for name, _, _ in mutants}
    if unknown:
        sys.exit(f"mutants: {arguments.area} has no mutant {', '.join(sorted(unknown))}; `list` names them")
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    one = commands.add_parser("run")
    one.add_argument("names", nargs="*", help="only these mutants")
    one.add_argument("--area", choices=AREAS, default="runtime")
    one.add_argument("--build", help="folder of the build (default: build/controlled, for checker build/release)")
    one.add_argument("--sample", type=int, metavar="N",
                     help="only N of them, evenly spread; all of them when HOLDFAST_TEST_LONG is set")
    one.add_argument("--all-suites", action="store_true", help="try the other suites, too, before a mutant has survived")
    one.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at a time (default: the processors)")
    one.add_argument("--timeout", type=float, default=120, help="seconds for one suite (default: %(default)s)")
    commands.add_parser("list")
    commands.add_parser("check")
    one = commands.add_parser("apply")
    one.add_argument("area", choices=AREAS)
    one.add_argument("dir", type=pathlib.Path)
    one.add_argument("more", nargs="*", metavar="PATH", help="also copy this file, to add the first mutant to it")
    one.add_argument("--keep-going", action="store_true", help="leave out hunks that do not apply")
    one = commands.add_parser("extract")
    one.add_argument("dir", type=pathlib.Path, nargs="?")
    commands.add_parser("self-test")
    arguments = parser.parse_args()
    try:
        if arguments.command == "run":
            return run(arguments)
        if arguments.command == "list":
            for area in AREAS:
                for name, meaning, suites in read_mutants(area):
                    print(f"{name:34}{meaning} ({area}: {', '.join(suites)})")
        elif arguments.command == "check":
            return check()
        elif arguments.command == "apply":
            return apply_area(arguments.area, arguments.dir, arguments.more, arguments.keep_going)
        elif arguments.command == "extract":
            extract(arguments.dir)
        else:
            return self_test()
    except PatchError as error:
        sys.exit(f"mutants: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
