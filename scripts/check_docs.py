#!/usr/bin/env python3
"""Checks that what the documents name is there: files and folders, links, and HOLDFAST_* names; and that their diffs are true.

A file may be named by the end of its path, as `exec/queue.h`. A diff after the line `<!-- diff:applies -->` applies to the
tree, one after `<!-- diff:is-in-the-tree -->` has been applied. Prints what is wrong; the exit status says whether there was
something.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENDINGS = (".h", ".cpp", ".def", ".py", ".sh", ".md", ".cmake")
FOLDERS = {"benchmarks", "bindings", "cmake", "compat", "docs", "examples", "include", "registry", "scripts", "src", "tests", "tools"}
# Names of files that a reader would make.
OF_THE_READER = {"script.py", "first.cpp"}


def named_paths(text):
    """What looks like a path, between backquotes."""
    for code in re.findall(r"`([^`\n]+)`", text):
        for word in code.split():
            word = word.strip("(),;:").rstrip("/")
            if re.fullmatch(r"\w[\w./-]*", word) and ("/" in word or word.endswith(ENDINGS)):
                yield word


def wrong_diffs(text):
    """What git says of diffs that are not as their line says."""
    for state, diff in re.findall(r"<!-- diff:([\w-]+) -->\n```diff\n(.*?)```", text, re.DOTALL):
        command = ["git", "apply", "--check"] + (["--reverse"] if state == "is-in-the-tree" else [])
        result = subprocess.run(command + ["-"], input=diff, text=True, capture_output=True)
        if result.returncode != 0:
            yield result.stderr.strip().replace("\n", "; ")


def main():
    os.chdir(ROOT)
    files = []
    for folder, inner, names in os.walk("."):
        inner[:] = [name for name in inner if name != "__pycache__" and (folder != "." or name in FOLDERS)]
        files += [os.path.normpath(os.path.join(folder, name)) for name in names]
    # Every end of every path, and of every folder on the way to it.
    ends = set()
    for path in files:
        parts = path.split("/")
        for last in range(1, len(parts) + 1):
            ends.update("/".join(parts[first:last]) for first in range(last))
    documents = [path for path in files if path.endswith(".md") and path.count("/") < 2]
    defined = set()
    for path in set(files) - set(documents):
        with open(path, "rb") as source:
            defined.update(re.findall(rb"\bHOLDFAST_\w+", source.read()))
    problems = []
    for document in documents:
        with open(document, encoding="utf-8") as source:
            text = source.read()
        problems += [(document, path) for path in set(named_paths(text)) - ends - OF_THE_READER]
        problems += [(document, name) for name in set(re.findall(r"\bHOLDFAST_\w+", text)) if name.encode() not in defined]
        for link in set(re.findall(r"\]\(([\w./-]+)\)", text)):
            if not os.path.exists(os.path.join(os.path.dirname(document), link)):
                problems.append((document, link))
        for message in wrong_diffs(text):
            problems.append((document, message))
            print(f"check_docs: a diff of {document}: {message}")
    for document, name in sorted(problems):
        if not name.startswith("error:"):
            print(f"check_docs: {document} names {name}, which is not there")
    print(f"check_docs: {len(documents)} documents, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
