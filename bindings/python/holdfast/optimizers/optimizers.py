"""Optimizers: how parameters follow from gradients, and from the state that each keeps for every parameter."""

from __future__ import annotations

import math
from typing import Callable, TypeAlias

import holdfast.core as mx
from holdfast.utils import tree_flatten, tree_map, tree_merge, tree_reduce, tree_unflatten

Rate: TypeAlias = "float | Callable[[mx.array], mx.array]"


class Optimizer:
    """The base of optimizers: a class of its own implements init_single and apply_single.

    Settings that are functions of the step are in the state under their name, and change with each update.
    """

    def __init__(self, schedulers=None) -> None:
        self._initialized = False
        self._state = {"step": mx.array(0, mx.uint64)}
        self._schedulers = dict(schedulers or {})

    @property
    def state(self) -> dict:
        """The step, scheduled settings, and the state of each parameter."""
        return self._state

    @state.setter
    def state(self, state: dict):
        # What was saved may be put back before the first update.
        self._initialized = False
        self._state = state

    @property
    def step(self) -> mx.array:
        """How many updates there were."""
        return self.state["step"]

    @property
    def learning_rate(self) -> mx.array:
        """What steps are scaled by."""
        return self.state["learning_rate"]

    @learning_rate.setter
    def learning_rate(self, learning_rate):
        self.state["learning_rate"] = mx.array(learning_rate)

    def _maybe_schedule(self, name, param):
        if callable(param):
            self._schedulers[name] = param
            value = param(self.step)
        else:
            value = mx.array(param)
        self.state[name] = value

    def init(self, parameters: dict) -> None:
        """Makes the state of these parameters.

        Args:
            parameters (dict): as Module.parameters gives
        """
        def add(parameter, state):
            if not state:
                self.init_single(parameter, state)
            return state

        empty = tree_map(lambda _: {}, parameters)
        self._state.update(tree_map(add, parameters, _with(empty, self._state)))
        self._initialized = True

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Puts the state of one parameter into a dict."""
        raise NotImplementedError(f"{type(self).__name__} has no init_single")

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """The new parameter; the state is changed."""
        raise NotImplementedError(f"{type(self).__name__} has no apply_single")

    def update(self, model, gradients: dict) -> None:
        """Replaces the parameters of a model.

        Args:
            model (Module): the model
            gradients (dict): of some or all of its parameters
        """
        model.update(self.apply_gradients(gradients, model))

    def apply_gradients(self, gradients: dict, parameters: dict) -> dict:
        """The new parameters, in the form of the gradients.

        Args:
            gradients (dict): of some or all of the parameters
            parameters (dict): the parameters

        Returns:
            dict: the new parameters
        """
        if not self._initialized:
            self.init(gradients)
        for name, schedule in self._schedulers.items():
            self.state[name] = schedule(self.step)
        self.state["step"] = self.step + 1
        return tree_map(self.apply_single, gradients, parameters, self.state)

    def _rate(self, gradient, name="learning_rate"):
        return self.state[name].astype(gradient.dtype)


def _with(tree, values):
    """The tree with what `values` has at its places."""
    if isinstance(tree, dict) and tree and isinstance(values, dict):
        return {key: _with(part, values.get(key)) for key, part in tree.items()}
    if isinstance(tree, (list, tuple)) and isinstance(values, (list, tuple)):
        return type(tree)(_with(part, values[i] if i < len(values) else None) for i, part in enumerate(tree))
    return values if isinstance(values, dict) and not tree else tree


class MultiOptimizer(Optimizer):
    """Several optimizers: the first whose filter (path, gradient) accepts a parameter has it, the last one the rest."""

    def __init__(self, optimizers, filters: list = []) -> None:
        super().__init__()
        if len(filters) != len(optimizers) - 1:
            raise ValueError(f"[MultiOptimizer] {len(optimizers)} optimizers need {len(optimizers) - 1} filters, got {len(filters)}")
        self._state = {}
        self.optimizers, self.filters = optimizers, [*filters, lambda *_: True]

    def _split(self, gradients):
        parts = [[] for _ in self.optimizers]
        for path, gradient in tree_flatten(gradients):
            for part, accepts in zip(parts, self.filters):
                if accepts(path, gradient):
                    part.append((path, gradient))
                    break
        return [tree_unflatten(part) if part else {} for part in parts]

    def init(self, parameters: dict) -> None:
        """Makes the state of these parameters."""
        for optimizer, part in zip(self.optimizers, self._split(parameters)):
            optimizer.init(part)

    def apply_gradients(self, gradients: dict, parameters: dict) -> dict:
        """The new parameters."""
        made: dict = {}
        for optimizer, part in zip(self.optimizers, self._split(gradients)):
            made = tree_merge(made, optimizer.apply_gradients(part, parameters))
        return made

    @property
    def state(self) -> dict:
        """The states of the optimizers."""
        return {"states": [optimizer.state for optimizer in self.optimizers]}

    @state.setter
    def state(self, state: dict):
        states = state.get("states", []) if state else []
        if len(states) != len(self.optimizers):
            raise ValueError(f"[MultiOptimizer] expected {len(self.optimizers)} states, got {len(states)}")
        for optimizer, each in zip(self.optimizers, states):
            optimizer.state = each

    @property
    def learning_rate(self) -> mx.array:
        """That of the first optimizer."""
        return self.optimizers[0].learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate):
        for optimizer in self.optimizers:
            optimizer.learning_rate = learning_rate


class SGD(Optimizer):
    """Steps against the gradient, with momentum."""

    def __init__(self, learning_rate: Rate, momentum: float = 0.0, weight_decay: float = 0.0, dampening: float = 0.0, nesterov: bool = False) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("[SGD] Nesterov momentum requires a momentum and zero dampening")
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.momentum, self.weight_decay, self.dampening, self.nesterov = momentum, weight_decay, dampening, nesterov

    def init_single(self, parameter: mx.array, state: dict) -> None:
        state["v"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        rate = self._rate(gradient)
        if self.weight_decay != 0:
            gradient = gradient + self.weight_decay * parameter
        if self.momentum <= 0:
            return parameter - rate * gradient
        state["v"] = v = self.momentum * state.get("v") + (1 - self.dampening) * gradient
        return parameter - rate * (gradient + self.momentum * v if self.nesterov else v)


class RMSprop(Optimizer):
    """Steps divided by the root of the running mean of squared gradients."""

    def __init__(self, learning_rate: Rate, alpha: float = 0.99, eps: float = 1e-8) -> None:
        super().__init__()
        if alpha < 0.0 or eps < 0.0:
            raise ValueError(f"[RMSprop] alpha and eps must not be negative, got {alpha} and {eps}")
        self._maybe_schedule("learning_rate", learning_rate)
        self.alpha, self.eps = alpha, eps

    def init_single(self, parameter: mx.array, state: dict) -> None:
        state["v"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        state["v"] = v = self.alpha * state["v"] + (1 - self.alpha) * mx.square(gradient)
        return parameter - self._rate(gradient) * gradient / (mx.sqrt(v) + self.eps)


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of squared gradients."""

    def __init__(self, learning_rate: Rate, eps: float = 1e-8) -> None:
        super().__init__()
        if eps < 0.0:
            raise ValueError(f"[Adagrad] eps must not be negative, got {eps}")
        self._maybe_schedule("learning_rate", learning_rate)
        self.eps = eps

    def init_single(self, parameter: mx.array, state: dict) -> None:
        state["v"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        state["v"] = v = state["v"] + mx.square(gradient)
        return parameter - self._rate(gradient) * gradient / (mx.sqrt(v) + self.eps)


class AdaDelta(Optimizer):
    """Steps as large as those before, relative to the gradients."""

    def __init__(self, learning_rate: Rate, rho: float = 0.9, eps: float = 1e-6) -> None:
        super().__init__()
        if rho < 0.0 or eps < 0.0:
            raise ValueError(f"[AdaDelta] rho and eps must not be negative, got {rho} and {eps}")
        self._maybe_schedule("learning_rate", learning_rate)
        self.rho, self.eps = rho, eps

    def init_single(self, parameter: mx.array, state: dict) -> None:
        state["v"], state["u"] = mx.zeros_like(parameter), mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        v = self.rho * state["v"] + (1 - self.rho) * mx.square(gradient)
        d = mx.sqrt(state["u"] + self.eps) / mx.sqrt(v + self.eps) * gradient
        state["v"], state["u"] = v, self.rho * state["u"] + (1 - self.rho) * mx.square(d)
        return parameter - self._rate(gradient) * d


class Adam(Optimizer):
    """Running means of gradients, over the root of those of their squares."""

    def __init__(self, learning_rate: Rate, betas: list[float] = [0.9, 0.999], eps: float = 1e-8, bias_correction: bool = False) -> None:
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.betas, self.eps, self.bias_correction = betas, eps, bias_correction

    def init_single(self, parameter: mx.array, state: dict) -> None:
        state["m"], state["v"] = mx.zeros_like(parameter), mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        rate, (b1, b2) = self._rate(gradient), self.betas
        state["m"] = m = b1 * state["m"] + (1 - b1) * gradient
        state["v"] = v = b2 * state["v"] + (1 - b2) * mx.square(gradient)
        if not self.bias_correction:
            return parameter - rate * m / (mx.sqrt(v) + self.eps)
        scale = (rate / (1 - b1**self.step)).astype(gradient.dtype)
        root = mx.rsqrt(1 - b2**self.step).astype(gradient.dtype)
        return parameter - scale * m / (mx.sqrt(v) * root + self.eps)


class AdamW(Adam):
    """Adam, and parameters decay."""

    def __init__(self, learning_rate: Rate, betas: list[float] = [0.9, 0.999], eps: float = 1e-8, weight_decay: float = 0.01, bias_correction: bool = False) -> None:
        super().__init__(learning_rate, betas, eps, bias_correction)
        self.weight_decay = weight_decay

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        return super().apply_single(gradient, parameter * (1 - self._rate(gradient) * self.weight_decay), state)


class Adamax(Adam):
    """Adam with the largest gradient in place of the root."""

    def __init__(self, learning_rate: Rate, betas: list[float] = [0.9, 0.999], eps: float = 1e-8) -> None:
        super().__init__(learning_rate, betas, eps)
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"[Adamax] betas must be in [0, 1), got {betas}")

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        b1, b2 = self.betas
        state["m"] = m = b1 * state["m"] + (1 - b1) * gradient
        state["v"] = v = mx.maximum(b2 * state["v"], mx.abs(gradient))
        return parameter - self._rate(gradient) * m / (v + self.eps)


class Lion(Optimizer):
    """Steps of one size, by the sign of a running mean."""

    def __init__(self, learning_rate: Rate, betas: list[float] = [0.9, 0.99], weight_decay: float = 0.0) -> None:
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.betas, self.weight_decay = betas, weight_decay

    def init_single(self, parameter: mx.array, state: dict) -> None:
        state["m"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        rate, (b1, b2), m = self._rate(gradient), self.betas, state["m"]
        state["m"] = b2 * m + (1 - b2) * gradient
        if self.weight_decay > 0:
            parameter = parameter * (1 - rate * self.weight_decay)
        return parameter - rate * mx.sign(b1 * m + (1 - b1) * gradient)


def _root_mean_square(values):
    return mx.sqrt(mx.mean(mx.square(values)))


class Adafactor(Optimizer):
    """Means of squared gradients for rows and columns in place of all elements."""

    def __init__(self, learning_rate: Rate | None = None, eps: tuple[float, float] = (1e-30, 1e-3), clip_threshold: float = 1.0, decay_rate: float = -0.8,
                 beta_1: float | None = None, weight_decay: float = 0.0, scale_parameter: bool = True, relative_step: bool = True,
                 warmup_init: bool = False):
        super().__init__()
        if learning_rate is not None:
            self._maybe_schedule("learning_rate", learning_rate)
        self.eps, self.clip_threshold, self.decay_rate, self.beta_1, self.weight_decay = eps, clip_threshold, decay_rate, beta_1, weight_decay
        self.scale_parameter, self.relative_step, self.warmup_init = scale_parameter, relative_step, warmup_init

    def init_single(self, parameter: mx.array, state: dict) -> None:
        if parameter.ndim >= 2:
            state["exp_avg_sq_row"] = mx.zeros(parameter.shape[:-1], parameter.dtype)
            state["exp_avg_sq_col"] = mx.zeros((*parameter.shape[:-2], parameter.shape[-1]), parameter.dtype)
        else:
            state["exp_avg_sq"] = mx.zeros_like(parameter)
        if self.beta_1 is not None:
            state["exp_avg"] = mx.zeros_like(parameter)

    def _learning_rate_for(self, parameter_rms):
        if self.relative_step:
            largest = 1e-6 * self.step if self.warmup_init else 1e-2
            rate = mx.minimum(largest, mx.rsqrt(self.step))
        else:
            rate = self.learning_rate
        rate = rate.astype(parameter_rms.dtype)
        return mx.maximum(self.eps[1], parameter_rms) * rate if self.scale_parameter else rate

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        rate = self._learning_rate_for(_root_mean_square(parameter))
        kept = 1.0 - mx.power(self.step.astype(mx.float32), self.decay_rate).astype(gradient.dtype)
        square = mx.square(gradient) + self.eps[0]
        if gradient.ndim >= 2:
            state["exp_avg_sq_row"] = row = kept * state["exp_avg_sq_row"] + (1 - kept) * mx.mean(square, axis=-1)
            state["exp_avg_sq_col"] = column = kept * state["exp_avg_sq_col"] + (1 - kept) * mx.mean(square, axis=-2)
            factor = mx.rsqrt(row / mx.mean(row, axis=-1, keepdims=True))
            change = factor[..., None] * mx.rsqrt(column)[..., None, :] * gradient
        else:
            state["exp_avg_sq"] = mean = kept * state["exp_avg_sq"] + (1 - kept) * square
            change = mx.rsqrt(mean) * gradient
        change = change / mx.maximum(1.0, _root_mean_square(change) / self.clip_threshold) * rate
        if self.beta_1 is not None:
            state["exp_avg"] = change = self.beta_1 * state["exp_avg"] + (1 - self.beta_1) * change
        if self.weight_decay != 0:
            parameter = parameter - parameter * (self.weight_decay * rate)
        return parameter - change


class Muon(Optimizer):
    """Momentum made orthogonal, for matrices; other parameters are better left to another optimizer."""

    def __init__(self, learning_rate: Rate, momentum: float = 0.95, weight_decay: float = 0.01, nesterov: bool = True, ns_steps: int = 5) -> None:
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.momentum, self.weight_decay, self.nesterov, self.ns_steps = momentum, weight_decay, nesterov, ns_steps

    def init_single(self, parameter: mx.array, state: dict) -> None:
        state["v"] = mx.zeros_like(parameter)

    def _orthogonal(self, x):
        """An odd polynomial, several times, that takes singular values towards 1."""
        a, b, c = 3.4445, -4.7750, 2.0315
        is_tall = x.shape[-2] > x.shape[-1]
        x = x.T if is_tall else x
        x = x / (mx.linalg.norm(x, keepdims=True) + 1e-7)
        for _ in range(self.ns_steps):
            square = x @ x.T
            x = a * x + mx.addmm(b * square, square, square, beta=1.0, alpha=c) @ x
        return x.T if is_tall else x

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        if self.weight_decay != 0:
            gradient = gradient + self.weight_decay * parameter
        state["v"] = v = self.momentum * state["v"] + (1 - self.momentum) * gradient
        change = gradient * (1 - self.momentum) + v * self.momentum if self.nesterov else v
        rate = self._rate(gradient)
        if change.ndim >= 2:
            shape = change.shape
            change = self._orthogonal(change.reshape(shape[0], -1)).reshape(shape)
            rate = rate * math.sqrt(max(1, change.shape[-2] / change.shape[-1]))
        return parameter - rate * change


def clip_grad_norm(grads, max_norm):
    """Scales gradients so that their norm is at most max_norm; also gives the norm that it was.

    Args:
        grads (Any): a tree of arrays
        max_norm (float): the largest norm

    Returns:
        tuple[Any, array]: the gradients, and their norm before
    """
    norm = mx.sqrt(tree_reduce(lambda total, gradient: total + mx.square(gradient).sum(), grads, 0.0))
    scale = mx.minimum(max_norm / (norm + 1e-6), 1.0)
    return tree_map(lambda gradient: gradient * scale, grads), norm
