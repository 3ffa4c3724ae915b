"""Functions over trees: nested lists, tuples and dicts, with anything else as leaves."""

from __future__ import annotations

from typing import Any, Callable

__all__ = ["tree_map", "tree_map_with_path", "tree_flatten", "tree_unflatten", "tree_reduce", "tree_merge"]


def _is_node(tree, is_leaf):
    return isinstance(tree, (list, tuple, dict)) and not (is_leaf is not None and is_leaf(tree))


def _like(tree, items):
    """A list or tuple of the class of `tree`; named tuples take their items one by one."""
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*items)
    return type(tree)(items) if isinstance(tree, tuple) else list(items)


def tree_map(fn: Callable, tree: Any, *rest: Any, is_leaf: Callable | None = None) -> Any:
    """The tree with `fn` applied to its leaves, together with those at the same places of `rest`.

    Args:
        fn (Callable): takes a leaf of each tree
        tree (Any): its form is that of the result
        rest (Any): trees with the same nodes
        is_leaf (Callable | None): true for nodes that are leaves

    Returns:
        Any: a tree of what `fn` returns
    """
    if not _is_node(tree, is_leaf):
        return fn(tree, *rest)
    if isinstance(tree, dict):
        return {key: tree_map(fn, value, *(other[key] for other in rest), is_leaf=is_leaf) for key, value in tree.items()}
    return _like(tree, [tree_map(fn, value, *(other[i] for other in rest), is_leaf=is_leaf) for i, value in enumerate(tree)])


def tree_map_with_path(fn: Callable, tree: Any, *rest: Any, is_leaf: Callable | None = None, path: Any = None) -> Any:
    """As tree_map; `fn` gets the place of the leaf first, such as "layers.0.weight".

    Args:
        fn (Callable): takes a path and a leaf of each tree
        tree (Any): its form is that of the result
        rest (Any): trees with the same nodes
        is_leaf (Callable | None): true for nodes that are leaves
        path (Any): the place of the tree itself

    Returns:
        Any: a tree of what `fn` returns
    """
    if not _is_node(tree, is_leaf):
        return fn(path, tree, *rest)

    def below(key, value):
        place = f"{path}.{key}" if path else str(key)
        return tree_map_with_path(fn, value, *(other[key] for other in rest), is_leaf=is_leaf, path=place)

    if isinstance(tree, dict):
        return {key: below(key, value) for key, value in tree.items()}
    return _like(tree, [below(i, value) for i, value in enumerate(tree)])


def tree_flatten(tree: Any, prefix: str = "", is_leaf: Callable | None = None, destination: list | dict | None = None) -> list | dict:
    """The leaves with their places: [("layers.0.weight", leaf), …], or a dict of these.

    Args:
        tree (Any): the tree
        prefix (str): what places begin with; its first character is dropped
        is_leaf (Callable | None): true for nodes that are leaves
        destination (list | dict | None): what the leaves are added to

    Returns:
        list | dict: the destination
    """
    if destination is None:
        destination = []
    if not _is_node(tree, is_leaf):
        place = prefix[1:]
        if isinstance(destination, dict):
            destination[place] = tree
        else:
            destination.append((place, tree))
        return destination
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        tree_flatten(value, f"{prefix}.{key}", is_leaf, destination)
    return destination


def tree_unflatten(tree: list | dict) -> Any:
    """The tree of places and leaves: the inverse of tree_flatten. Numbers become places of lists.

    Args:
        tree (list | dict): pairs of a place and a leaf

    Returns:
        Any: the tree
    """
    items = list(tree.items()) if isinstance(tree, dict) else list(tree)
    if len(items) == 1 and items[0][0] == "":
        return items[0][1]
    parts: dict[str, list] = {}
    for place, value in items:
        first, _, rest = place.partition(".")
        parts.setdefault(first, []).append((rest, value))
    if parts and all(key.isdigit() for key in parts):
        made: list = []
        for key in sorted(parts, key=int):
            made += [{} for _ in range(int(key) - len(made))]
            made.append(tree_unflatten(parts[key]))
        return made
    return {key: tree_unflatten(part) for key, part in parts.items()}


def tree_reduce(fn: Callable, tree: Any, initializer: Any = None, is_leaf: Callable | None = None) -> Any:
    """One value of all leaves: fn(… fn(fn(initializer, first), second) …, last).

    Args:
        fn (Callable): takes what was reduced so far and a leaf
        tree (Any): the tree
        initializer (Any): what is first; None: the first leaf
        is_leaf (Callable | None): true for nodes that are leaves

    Returns:
        Any: the value
    """
    if not _is_node(tree, is_leaf):
        return tree if initializer is None else fn(initializer, tree)
    for value in tree.values() if isinstance(tree, dict) else tree:
        initializer = tree_reduce(fn, value, initializer, is_leaf)
    return initializer


def tree_merge(tree_a: Any, tree_b: Any, merge_fn: Callable | None = None) -> Any:
    """Both trees in one. Where both have a leaf, `merge_fn` decides.

    Args:
        tree_a (Any): a tree
        tree_b (Any): a tree; empty nodes and None yield to the other tree
        merge_fn (Callable | None): takes two leaves; None: two leaves at one place are an error

    Returns:
        Any: the merged tree
    """
    def is_empty(tree):
        return tree is None or isinstance(tree, (list, tuple, dict)) and len(tree) == 0

    if is_empty(tree_a):
        return tree_b
    if is_empty(tree_b):
        return tree_a
    if isinstance(tree_a, dict) and isinstance(tree_b, dict):
        return {key: tree_merge(tree_a.get(key), tree_b.get(key), merge_fn) for key in {**tree_a, **tree_b}}
    if isinstance(tree_a, (list, tuple)) and isinstance(tree_b, (list, tuple)):
        size = max(len(tree_a), len(tree_b))
        at = lambda tree, i: tree[i] if i < len(tree) else None  # noqa: E731
        return _like(tree_a, [tree_merge(at(tree_a, i), at(tree_b, i), merge_fn) for i in range(size)])
    if merge_fn is None:
        raise ValueError(f"[tree_merge] both trees have a leaf at one place: a {type(tree_a).__name__} and a {type(tree_b).__name__}")
    return merge_fn(tree_a, tree_b)
