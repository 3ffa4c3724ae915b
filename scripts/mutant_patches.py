"""Patches that are found by their lines: the part of scripts/mutants.py that knows nothing of mutants but how they are written.

A patch is a unified diff of one file. Its line numbers say where a change was when the patch was written and decide nothing: a hunk
belongs where its lines are, and these must be in one place of the file only. When the lines around a change have been edited, those
that are left decide, two lines at least, as long as they still name one place. So code may be moved and edited near a mutant; when
the changed lines themselves are gone, that is an error.
"""

import re
import subprocess
import tempfile

CONTEXT = 2  # lines around a change; more where these are in several places
HEADING = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$")
MUTANT = re.compile(r"\bMutant::(\w+)")


class PatchError(Exception):
    pass


class Hunk:
    """Lines with their marks (" ", "-" or "+"), and the number of the first one in the file that was patched, from 0."""

    def __init__(self, start, lines):
        self.start = start
        self.lines = lines

    def old(self):
        return [text for mark, text in self.lines if mark != "+"]

    def names(self):
        """The mutants that it adds, in their order."""
        return list(dict.fromkeys(name for mark, text in self.lines if mark == "+" for name in MUTANT.findall(text)))

    def context(self):
        """How many lines at the beginning and at the end are not changed."""
        marks = [mark for mark, _ in self.lines]
        changed = [i for i, mark in enumerate(marks) if mark != " "]
        return changed[0], len(marks) - 1 - changed[-1]

    def trimmed(self, before, after):
        """Without so many lines of context."""
        return Hunk(self.start + before, self.lines[before : len(self.lines) - after])

    def __str__(self):
        names = self.names()
        return f"the hunk of {', '.join(names)}" if names else f"the hunk that begins at line {self.start + 1}"


def places_of(block, lines):
    """Where the block of lines is in `lines`."""
    return [i for i in range(len(lines) - len(block) + 1) if lines[i : i + len(block)] == block]


# --- the text of a patch ---


def parse(text, name):
    """(path, hunks) of a patch."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if len(lines) < 2 or not lines[0].startswith("--- a/") or lines[1] != "+++ b/" + lines[0][6:]:
        raise PatchError(f"{name}: a patch begins with --- a/PATH and +++ b/PATH, of one file")
    hunks, at = [], 2
    while at < len(lines):
        heading = HEADING.match(lines[at])
        if not heading:
            raise PatchError(f"{name}:{at + 1}: expected the heading of a hunk (@@ -line,count +line,count @@), got \"{lines[at]}\"")
        first = at + 1
        at = first
        while at < len(lines) and not lines[at].startswith("@@"):
            if lines[at][:1] not in ("", " ", "-", "+"):
                raise PatchError(f"{name}:{at + 1}: a line of a hunk begins with a space, - or +, got \"{lines[at]}\"")
            at += 1
        # Editors that remove trailing spaces leave nothing of an empty line.
        hunk = Hunk(int(heading[1]) - 1, [(line[:1] or " ", line[1:]) for line in lines[first:at]])
        if not any(mark != " " for mark, _ in hunk.lines):
            raise PatchError(f"{name}:{first}: a hunk must change something")
        hunks.append(hunk)
    return lines[0][6:], hunks


def text_of(path, hunks):
    out = [f"--- a/{path}", f"+++ b/{path}"]
    shift = 0
    for hunk in hunks:
        old = sum(mark != "+" for mark, _ in hunk.lines)
        new = sum(mark != "-" for mark, _ in hunk.lines)
        out.append(f"@@ -{hunk.start + 1},{old} +{hunk.start + 1 + shift},{new} @@ {' '.join(hunk.names())}".rstrip())
        out += [mark + text for mark, text in hunk.lines]
        shift += new - old
    return "\n".join(out) + "\n"


# --- applying ---


def place(hunk, lines):
    """(hunk, index): the hunk, perhaps with less context, and the only place of its lines."""
    before, after = hunk.context()
    is_ambiguous = False
    for lost in range(before + after + 1):
        for lost_before in range(max(0, lost - after), min(before, lost) + 1):
            candidate = hunk.trimmed(lost_before, lost - lost_before)
            if len(candidate.old()) < min(2, len(hunk.old())):
                continue
            places = places_of(candidate.old(), lines)
            if len(places) == 1:
                return candidate, places[0]
            is_ambiguous |= len(places) > 1
    raise PatchError(f"{hunk}: its lines are in {'several places' if is_ambiguous else 'no place'} of the file")


def apply(hunks, text, leave_out=None):
    """The text with all hunks. They are placed in the text as it is, none sees another: all apply where each does. Hunks that do
    not apply are passed to `leave_out` with what is wrong; without one, that is an error."""
    lines = text.split("\n")
    placed = []
    for hunk in hunks:
        try:
            candidate, at = place(hunk, lines)
            before, after = candidate.context()
            changed = range(at + before, at + len(candidate.old()) - after)
            for other, other_at, other_changed in placed:
                # Two insertions at one place have no order.
                if (changed.start < other_changed.stop and other_changed.start < changed.stop) or changed.start == other_changed.start:
                    raise PatchError(f"{hunk}: it changes what {other} changes")
        except PatchError as error:
            if leave_out is None:
                raise
            leave_out(hunk, error)
            continue
        placed.append((candidate, at, changed))
    for hunk, at, changed in sorted(placed, key=lambda one: one[2].start, reverse=True):
        before, after = hunk.context()
        new = [text for mark, text in hunk.lines if mark != "-"]
        lines[changed.start : changed.stop] = new[before : len(new) - after]
    return "\n".join(lines)


# --- making patches ---


def changes_between(old, new):
    """[(first, last, lines)]: lines [first, last) of the old text are replaced by these."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("old", old), ("new", new)):
            with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        run = subprocess.run(["git", "diff", "--no-index", "--no-color", "--no-ext-diff", "-U0", "--minimal", "old", "new"],
                             cwd=folder, capture_output=True, text=True)
    if run.returncode not in (0, 1):
        raise PatchError(f"git diff failed: {run.stderr}")
    changes = []
    for line in run.stdout.split("\n")[:-1]:
        heading = HEADING.match(line)
        if heading:
            count = 1 if heading[2] is None else int(heading[2])
            first = int(heading[1]) - (count > 0)  # an insertion names the line before it
            changes.append((first, first + count, []))
        elif changes and line.startswith("+"):
            changes[-1][2].append(line[1:])
        elif line.startswith("\\"):
            raise PatchError("a file must end with a newline")
    return changes


def hunks_between(old, new):
    """What makes `new` of `old`, with as little context as names one place. Changes share the lines between them; they become one
    hunk when there are too few."""
    lines = old.split("\n")[:-1]
    groups = [[change] for change in changes_between(old, new)]
    wanted = [CONTEXT] * len(groups)

    def span(at):
        """The lines of the hunk of a group: those that it changes, and around them as many as are wanted and are its own."""
        begin, end = groups[at][0][0], groups[at][-1][1]
        gap_before = (begin - groups[at - 1][-1][1] + 1) // 2 if at else begin
        gap_after = (groups[at + 1][0][0] - end) // 2 if at + 1 < len(groups) else len(lines) - end
        return begin - min(wanted[at], gap_before), end + min(wanted[at], gap_after)

    def is_found(at):
        first, last = span(at)
        return last - first >= min(2, len(lines)) and len(places_of(lines[first:last], lines)) == 1

    at = 0
    while at < len(groups):
        before = span(at)
        if is_found(at):
            at += 1
            continue
        wanted[at] += 1
        if span(at) != before:
            continue
        if len(groups) == 1:
            raise PatchError("what is changed is in several places of the file")
        at = min(at, len(groups) - 2)  # one with its neighbour, then
        groups[at : at + 2] = [groups[at] + groups[at + 1]]
        wanted[at : at + 2] = [CONTEXT]
        at = max(at - 1, 0)

    hunks = []
    for at, group in enumerate(groups):
        first, last = span(at)
        marked, here = [], first
        for begin, end, added in group:
            marked += [(" ", line) for line in lines[here:begin]] + [("-", line) for line in lines[begin:end]]
            marked += [("+", line) for line in added]
            here = end
        hunks.append(Hunk(first, marked + [(" ", line) for line in lines[here:last]]))
    return hunks
