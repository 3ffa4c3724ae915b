"""Module: a tree of parameters that can be called. What it holds of arrays, modules and containers are the items of a dict."""

from __future__ import annotations

import os
from typing import Any, Callable

import holdfast.core as mx
from holdfast.utils import tree_flatten, tree_unflatten

_KEPT_AS_ITEMS = (mx.array, dict, list, tuple)


class Module(dict):
    """The base of layers and models.

    Attributes that are arrays, modules, or containers are items of the module, and by them its parameters and children; those whose names begin
    with an underscore are left out. Frozen parameters get no gradient from `value_and_grad`.
    """

    def __init__(self) -> None:
        self._no_grad = set()
        self._training = True

    @property
    def training(self):
        """Does the module train? Dropout and batch normalisation ask."""
        return self._training

    @property
    def state(self):
        """The module itself as a dict: what `compile` takes as inputs and outputs."""
        return self

    # --- attributes ---

    def __getattr__(self, key):
        try:
            return self[key]
        except KeyError:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {key!r}") from None

    def __setattr__(self, key, value):
        if isinstance(value, _KEPT_AS_ITEMS):
            self.__dict__.pop(key, None)
            self[key] = value
        else:
            super().__setattr__(key, value)
            self.pop(key, None)

    def __delattr__(self, key):
        if key in self:
            del self[key]
        else:
            super().__delattr__(key)

    # By identity: a dict's comparison would compare arrays.
    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__

    def _extra_repr(self):
        return ""

    def __repr__(self):
        children = tree_flatten(self.children(), is_leaf=self.is_module)
        text = f"{type(self).__name__}({self._extra_repr()}"
        for name, child in children:
            text += f"\n  ({name}): " + repr(child).replace("\n", "\n  ")
        return text + ("\n)" if children else ")")

    # --- walking ---

    @staticmethod
    def is_module(value):
        """Is it a module?"""
        return isinstance(value, Module)

    @staticmethod
    def valid_child_filter(module, key, value):
        """Items that are modules, or containers."""
        return isinstance(value, (dict, list)) and not key.startswith("_")

    @staticmethod
    def valid_parameter_filter(module, key, value):
        """Items that are arrays, modules, or containers."""
        return isinstance(value, (dict, list, mx.array)) and not key.startswith("_")

    @staticmethod
    def trainable_parameter_filter(module, key, value):
        """Parameters that are not frozen."""
        return Module.valid_parameter_filter(module, key, value) and key not in module._no_grad

    def filter_and_map(self, filter_fn: Callable, map_fn: Callable | None = None, is_leaf_fn: Callable | None = None) -> dict:
        """The items that `filter_fn` (module, key, value) accepts, as nested dicts, with `map_fn` applied to the leaves.

        Args:
            filter_fn (Callable): which items
            map_fn (Callable | None): what becomes of a leaf; None: itself
            is_leaf_fn (Callable | None): which values are leaves; None: what is no container

        Returns:
            dict: nested dicts
        """
        map_fn = map_fn or (lambda value: value)
        is_leaf_fn = is_leaf_fn or (lambda module, key, value: not isinstance(value, (dict, list)))

        def walk(module, key, value):
            if is_leaf_fn(module, key, value):
                return map_fn(value)
            if isinstance(value, Module):
                return value.filter_and_map(filter_fn, map_fn, is_leaf_fn)
            # What else is in a container keeps its place, with nothing in it.
            if isinstance(value, dict):
                return {k: walk(module, f"{key}.{k}", v) if filter_fn(module, f"{key}.{k}", v) else {} for k, v in value.items()}
            return [walk(module, f"{key}.{i}", v) if filter_fn(module, f"{key}.{i}", v) else {} for i, v in enumerate(value)]

        return {key: walk(self, key, value) for key, value in self.items() if filter_fn(self, key, value)}

    def parameters(self) -> dict:
        """All arrays, as nested dicts and lists."""
        return self.filter_and_map(self.valid_parameter_filter)

    def trainable_parameters(self) -> dict:
        """The parameters that are not frozen."""
        return self.filter_and_map(self.trainable_parameter_filter)

    def children(self) -> dict:
        """The modules that are items of this one."""
        return self.filter_and_map(self.valid_child_filter, is_leaf_fn=lambda module, key, value: isinstance(value, Module))

    def leaf_modules(self) -> dict:
        """The modules without children."""
        def is_leaf(module, key, value):
            return isinstance(value, Module) and len(tree_flatten(value.children(), is_leaf=self.is_module)) == 0

        return self.filter_and_map(self.valid_child_filter, is_leaf_fn=is_leaf)

    def named_modules(self) -> list:
        """This module and all below it, with their places; this one's is ""."""
        found, waiting = [], [("", self)]
        while waiting:
            place, module = waiting.pop()
            found.append((place, module))
            prefix = f".{place}" if place else ""
            waiting += tree_flatten(module.children(), prefix=prefix, is_leaf=self.is_module)
        return found

    def modules(self) -> list:
        """This module and all below it."""
        return [module for _, module in self.named_modules()]

    def apply(self, map_fn: Callable, filter_fn: Callable | None = None) -> Module:
        """Replaces parameters by what `map_fn` makes of them.

        Args:
            map_fn (Callable): takes and returns an array
            filter_fn (Callable | None): which items (module, key, value); None: all parameters

        Returns:
            Module: this module
        """
        self.update(self.filter_and_map(filter_fn or self.valid_parameter_filter, map_fn))
        return self

    def apply_to_modules(self, apply_fn: Callable) -> Module:
        """Calls `apply_fn` with the place and the module, for all modules.

        Args:
            apply_fn (Callable): takes a str and a Module

        Returns:
            Module: this module
        """
        for place, module in self.named_modules():
            apply_fn(place, module)
        return self

    # --- changes ---

    def update(self, parameters: dict, strict: bool = True) -> Module:
        """Replaces parameters by those of nested dicts, which may be a part of them.

        Args:
            parameters (dict): as parameters() gives
            strict (bool): places that the module does not have are an error

        Returns:
            Module: this module
        """
        def is_replaced(old, new):
            if isinstance(old, mx.array):
                if not isinstance(new, mx.array):
                    raise ValueError(f"[Module.update] expected an array, got {type(new).__name__}")
                return True
            return False

        _update(self, parameters, is_replaced, strict, "update")
        return self

    def update_modules(self, modules: dict, strict: bool = True) -> Module:
        """Replaces children by those of nested dicts, which may be a part of them.

        Args:
            modules (dict): as children() gives
            strict (bool): places that hold no module are an error

        Returns:
            Module: this module
        """
        def is_replaced(old, new):
            if isinstance(old, Module) and isinstance(new, Module):
                return True
            if strict and not isinstance(new, (dict, list)):
                raise ValueError(f"[Module.update_modules] expected a module in the place of a module, got a {type(new).__name__} for a {type(old).__name__}")
            return False

        _update(self, modules, is_replaced, strict, "update_modules")
        return self

    def _each(self, recurse):
        return self.modules() if recurse else [self]

    def _keys(self, module, keys, strict):
        keys = [keys] if isinstance(keys, str) else list(keys)
        if strict:
            for key in keys:
                if key not in module:
                    raise KeyError(f"[Module] a {type(module).__name__} has no parameter {key!r}")
        return keys

    def freeze(self, *, recurse: bool = True, keys: str | list[str] | None = None, strict: bool = False) -> Module:
        """Parameters get no gradients from now on.

        Args:
            recurse (bool): those of modules below, too
            keys (str | list[str] | None): which ones; None: all
            strict (bool): a module without such a key is an error

        Returns:
            Module: this module
        """
        for module in self._each(recurse):
            module._no_grad.update(_local_parameters(module) if keys is None else self._keys(module, keys, strict))
        return self

    def unfreeze(self, *, recurse: bool = True, keys: str | list[str] | None = None, strict: bool = False) -> Module:
        """Parameters get gradients again.

        Args:
            recurse (bool): those of modules below, too
            keys (str | list[str] | None): which ones; None: all
            strict (bool): a module without such a key is an error

        Returns:
            Module: this module
        """
        for module in self._each(recurse):
            if keys is None:
                module._no_grad.clear()
            else:
                module._no_grad.difference_update(self._keys(module, keys, strict))
        return self

    def train(self, mode: bool = True) -> Module:
        """Sets whether the module and those below it train.

        Args:
            mode (bool): whether they do

        Returns:
            Module: this module
        """
        for module in self.modules():
            module._training = mode
        return self

    def eval(self) -> Module:
        """The module does not train: train(False)."""
        return self.train(False)

    def set_dtype(self, dtype: mx.Dtype, predicate: Callable | None = lambda dtype: mx.issubdtype(dtype, mx.floating)) -> None:
        """Converts the parameters whose dtypes `predicate` accepts: by default floating ones.

        Args:
            dtype (Dtype): what they become
            predicate (Callable | None): takes a dtype; None: all
        """
        accepts = predicate or (lambda _: True)
        self.apply(lambda value: value.astype(dtype) if accepts(value.dtype) else value)

    # --- files ---

    def load_weights(self, file_or_weights: str | list, strict: bool = True) -> Module:
        """Parameters from a .safetensors or .npz file, or from pairs of a place and an array.

        Args:
            file_or_weights (str | list): where from
            strict (bool): names and shapes must be those of the module

        Returns:
            Module: this module
        """
        if isinstance(file_or_weights, (str, os.PathLike)):
            file_or_weights = list(mx.load(str(file_or_weights)).items())
        weights = list(file_or_weights)
        if strict:
            given, own = dict(weights), dict(tree_flatten(self.parameters()))
            if extra := sorted(given.keys() - own.keys()):
                raise ValueError(f"[load_weights] got {len(extra)} parameters that the model does not have: {', '.join(extra[:20])}")
            if missing := sorted(own.keys() - given.keys()):
                raise ValueError(f"[load_weights] {len(missing)} parameters of the model are missing: {', '.join(missing[:20])}")
            for name, value in own.items():
                if not isinstance(given[name], mx.array):
                    raise ValueError(f"[load_weights] expected an array for {name}, got {type(given[name]).__name__}")
                if given[name].shape != value.shape:
                    raise ValueError(f"[load_weights] expected shape {value.shape} for {name}, got {given[name].shape}")
        if weights:
            self.update(tree_unflatten(weights), strict=False)
        return self

    def save_weights(self, file: str) -> None:
        """Writes the parameters to a file, .safetensors or .npz.

        Args:
            file (str): its name
        """
        file, parameters = str(file), tree_flatten(self.parameters(), destination={})
        if file.endswith(".npz"):
            mx.savez(file, **parameters)
        elif file.endswith(".safetensors"):
            mx.save_safetensors(file, parameters)
        else:
            raise ValueError(f"[save_weights] expected a name that ends with .npz or .safetensors, got {file}")


def _local_parameters(module):
    """The places of a module's own parameters, those in containers as well."""
    def places(key, value):
        if isinstance(value, mx.array):
            return [key]
        if isinstance(value, Module) or not isinstance(value, (dict, list)):
            return []
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [place for part, item in items for place in places(f"{key}.{part}", item)]

    return [place for key, value in module.items() if Module.valid_parameter_filter(module, key, value) for place in places(key, value)]


def _update(node, values, is_replaced, strict, who):
    """Goes down both trees, and replaces where `is_replaced` (old, new) says so."""
    if isinstance(values, dict):
        places = [(key, values[key], key in node) for key in values] if isinstance(node, dict) else None
    elif isinstance(values, (list, tuple)):
        places = [(i, value, i < len(node)) for i, value in enumerate(values)] if isinstance(node, list) else None
    else:
        places = None
    if places is None:
        if strict:
            raise ValueError(f"[Module.{who}] a {type(values).__name__} does not fit a {type(node).__name__}")
        return
    for key, new, is_there in places:
        if not is_there:
            if strict:
                raise ValueError(f"[Module.{who}] there is no parameter or module {key!r} in a {type(node).__name__}")
            continue
        old = node[key]
        if is_replaced(old, new):
            node[key] = new
        elif isinstance(old, (dict, list)):
            _update(old, new, is_replaced, strict, who)
        elif isinstance(old, tuple) and isinstance(new, (tuple, list)):
            kept = list(old)
            _update(kept, list(new), is_replaced, strict, who)
            node[key] = tuple(kept)
        elif strict and not (isinstance(new, (dict, list)) and not new):
            raise ValueError(f"[Module.{who}] a {type(new).__name__} cannot take the place of {key!r}, a {type(old).__name__}")
