"""Finds where functions are declared and defined, for scripts/check_includes.py.

A scanner, not a parser: it knows comments, literals, braces, namespaces and classes, and takes a name before a parenthesis at
the level of a namespace or class for a function. Bodies are skipped. Overloads count as one function.
"""

import re

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s"]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
ATTRIBUTE = re.compile(r"\[\[.*?\]\]|__attribute__\s*\(\(.*?\)\)", re.DOTALL)
FUNCTION = re.compile(r"((?:[A-Za-z_]\w*\s*::\s*)*(?:operator\s*(?:\(\)|[^\s\w(]+|\w+)|~?[A-Za-z_]\w*))\s*\(")
NAMESPACE = re.compile(r"(?:inline\s+)?namespace\b\s*([\w:]*)")
CLASS = re.compile(r"(?:class|struct|union)\s+(?:alignas\s*\([^)]*\)\s*)?([\w:]+)")
NO_FUNCTION = re.compile(r"(?:using|enum|friend|typedef|static_assert|extern)\b")
ANONYMOUS = "<anonymous>"


def blank(match):
    """A literal of no characters, or nothing; line breaks stay, so that line numbers do."""
    kept = "" if match.group(0)[0] in "/ \t#" else '""'
    return kept + "\n" * match.group(0).count("\n")


def without_template(head):
    """A declaration without `template <…>` before it."""
    while re.match(r"template\s*<", head):
        depth = 0
        for end, character in enumerate(head):
            depth += (character == "<") - (character == ">")
            if character == ">" and depth == 0:
                break
        head = head[end + 1:].lstrip()
    return head


def classify(head):
    """('namespace', 'class' or 'function', name) of what stands before a brace or semicolon; (None, None) for anything else."""
    head = re.sub(r"\b(?:public|private|protected)\s*:(?!:)", "", head)
    head = without_template(ATTRIBUTE.sub("", head).strip())
    if match := NAMESPACE.match(head):
        return "namespace", match.group(1) or ANONYMOUS
    match = CLASS.match(head)
    if match and "(" not in head[match.end():]:
        return "class", match.group(1)
    # The arguments of templates hold parentheses, too.
    while (shorter := re.sub(r"<[^<>]*>", "", head)) != head:
        head = shorter
    match = None if NO_FUNCTION.match(head) else FUNCTION.search(head)
    if match and "=" not in head[:match.start()]:
        return "function", re.sub(r"\s", "", match.group(1))
    return None, None


def skip_braces(text, at):
    """The place after the brace that closes the one at `at`."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return place + 1
    return len(text)


def functions(text):
    """(qualified name, line, is it a definition, is it in its class) of each function of a file."""
    text = DIRECTIVE.sub(blank, TOKEN.sub(blank, text))
    scopes, start, at, parentheses = [], 0, 0, 0
    while at < len(text):
        character = text[at]
        parentheses += (character == "(") - (character == ")")
        if parentheses > 0 or character not in ";{}":
            at += 1
            continue
        head = text[start:at]
        kind, name = classify(head)
        if kind == "function":
            line = text.count("\n", 0, at - len(head.lstrip())) + 1
            is_in_class = bool(scopes) and scopes[-1][0] == "class"
            yield "::".join([scope for _, scope in scopes] + [name]), line, character == "{", is_in_class
        if character == "}" and scopes:
            scopes.pop()
        if character == "{" and kind in ("namespace", "class"):
            scopes.append((kind, name))
        elif character == "{":
            at = skip_braces(text, at) - 1
        at += 1
        start = at


def misplaced(root, paths, layer_of):
    """(name, (path, line), headers that declare it) of each definition in a source file of another layer than they are."""
    declared, defined, own_classes = {}, [], set()
    for path in paths:
        if not path.endswith((".h", ".cpp")):
            continue
        for name, line, is_definition, is_in_class in functions((root / path).read_text(encoding="utf-8", errors="replace")):
            if ANONYMOUS in name:
                continue
            if path.endswith(".h"):
                declared.setdefault(name, set()).add(path)
            elif is_in_class:
                own_classes.add((path, name.rpartition("::")[0]))
            elif is_definition:
                defined.append((name, path, line))
    # A class may be named through a using declaration, from another namespace than its own.
    by_method = {}
    for name in declared:
        by_method.setdefault(tuple(name.split("::")[-2:]), set()).add(name)
    for name, path, line in defined:
        if (path, name.rpartition("::")[0]) in own_classes:
            continue
        last = tuple(name.split("::")[-2:])
        names = {name} if name in declared else by_method.get(last, set()) if last[0][:1].isupper() else set()
        headers = set().union(*(declared[found] for found in names))
        if headers and layer_of(path) not in {layer_of(header) for header in headers}:
            yield name, (path, line), headers
