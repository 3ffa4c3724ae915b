"""Recurrent layers: inputs are (time, features) or (batch, time, features); what they return has a state for each time."""

from __future__ import annotations

import math
from typing import Callable

import holdfast.core as mx
from holdfast.nn.module import Module


class _Recurrent(Module):
    def _uniform(self, *shape):
        bound = 1 / math.sqrt(self.hidden_size)
        return mx.random.uniform(-bound, bound, shape)

    def _extra_repr(self):
        function = f"nonlinearity={self.nonlinearity}, " if isinstance(self, RNN) else ""
        return f"input_dims={self._input_size}, hidden_size={self.hidden_size}, {function}bias={self._has_bias}"


class RNN(_Recurrent):
    """h = tanh(Wxh x + Whh h + bias), or another function of that."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: Callable | None = None) -> None:
        super().__init__()
        if nonlinearity is not None and not callable(nonlinearity):
            raise ValueError(f"[RNN] nonlinearity must be callable, got {nonlinearity!r}")
        self.nonlinearity = nonlinearity or mx.tanh
        self.hidden_size, self._input_size, self._has_bias = hidden_size, input_size, bias
        self.Wxh = self._uniform(hidden_size, input_size)
        self.Whh = self._uniform(hidden_size, hidden_size)
        self.bias = self._uniform(hidden_size) if bias else None

    def __call__(self, x, hidden=None):
        x = x @ self.Wxh.T if self.bias is None else mx.addmm(self.bias, x, self.Wxh.T)
        states = []
        for time in range(x.shape[-2]):
            hidden = self.nonlinearity(x[..., time, :] if hidden is None else x[..., time, :] + hidden @ self.Whh.T)
            states.append(hidden)
        return mx.stack(states, axis=-2)


class GRU(_Recurrent):
    """Gates decide how much of the state is reset, and how much is kept."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__()
        self.hidden_size, self._input_size, self._has_bias = hidden_size, input_size, bias
        self.Wx = self._uniform(3 * hidden_size, input_size)
        self.Wh = self._uniform(3 * hidden_size, hidden_size)
        self.b = self._uniform(3 * hidden_size) if bias else None
        self.bhn = self._uniform(hidden_size) if bias else None

    def __call__(self, x, hidden=None):
        x = x @ self.Wx.T if self.b is None else mx.addmm(self.b, x, self.Wx.T)
        gates, candidate = x[..., : 2 * self.hidden_size], x[..., 2 * self.hidden_size :]
        states = []
        for time in range(x.shape[-2]):
            reset_update, new = gates[..., time, :], candidate[..., time, :]
            from_state = self.bhn
            if hidden is not None:
                projected = hidden @ self.Wh.T
                reset_update = reset_update + projected[..., : 2 * self.hidden_size]
                new_from_state = projected[..., 2 * self.hidden_size :]
                from_state = new_from_state if self.bhn is None else new_from_state + self.bhn
            reset, update = mx.split(mx.sigmoid(reset_update), 2, axis=-1)
            if from_state is not None:
                new = new + reset * from_state
            new = (1 - update) * mx.tanh(new)
            hidden = new if hidden is None else new + update * hidden
            states.append(hidden)
        return mx.stack(states, axis=-2)


class LSTM(_Recurrent):
    """Long short-term memory: returns all hidden states and all cell states."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__()
        self.hidden_size, self._input_size, self._has_bias = hidden_size, input_size, bias
        self.Wx = self._uniform(4 * hidden_size, input_size)
        self.Wh = self._uniform(4 * hidden_size, hidden_size)
        self.bias = self._uniform(4 * hidden_size) if bias else None

    def __call__(self, x, hidden=None, cell=None):
        x = x @ self.Wx.T if self.bias is None else mx.addmm(self.bias, x, self.Wx.T)
        states, cells = [], []
        for time in range(x.shape[-2]):
            gates = x[..., time, :] if hidden is None else x[..., time, :] + hidden @ self.Wh.T
            enter, forget, new, out = mx.split(gates, 4, axis=-1)
            entered = mx.sigmoid(enter) * mx.tanh(new)
            cell = entered if cell is None else mx.sigmoid(forget) * cell + entered
            hidden = mx.sigmoid(out) * mx.tanh(cell)
            states.append(hidden)
            cells.append(cell)
        return mx.stack(states, axis=-2), mx.stack(cells, axis=-2)
