"""Learning rates that change with the step: each is a function of the number of the step, an array."""

from __future__ import annotations

import math
from typing import Callable

import holdfast.core as mx


def exponential_decay(init: float, decay_rate: float) -> Callable:
    """init * decay_rate^step."""
    return lambda step: init * decay_rate**step


def step_decay(init: float, decay_rate: float, step_size: int) -> Callable:
    """init, times decay_rate after each `step_size` steps."""
    return lambda step: init * decay_rate ** (step // step_size)


def cosine_decay(init: float, decay_steps: int, end: float = 0.0) -> Callable:
    """Half a cosine from init to end, in `decay_steps` steps."""
    def schedule(step):
        done = mx.minimum(step, decay_steps)
        return end + 0.5 * (1.0 + mx.cos((math.pi / decay_steps) * done)) * (init - end)

    return schedule


def linear_schedule(init: float, end: float, steps: int) -> Callable:
    """A line from init to end, in so many steps."""
    if steps < 1:
        raise ValueError(f"[linear_schedule] expected one step or more, got {steps}")
    return lambda step: mx.minimum(step, steps) * ((end - init) / steps) + init


def join_schedules(schedules: list[Callable], boundaries: list[int]) -> Callable:
    """One schedule after the other; each counts its steps from where it begins."""
    if not schedules:
        raise ValueError("[join_schedules] expected one schedule or more")
    if len(schedules) != len(boundaries) + 1:
        raise ValueError(f"[join_schedules] {len(schedules)} schedules need {len(schedules) - 1} boundaries, got {len(boundaries)}")

    def schedule(step):
        rate = schedules[0](step)
        for boundary, after in zip(boundaries, schedules[1:]):
            rate = mx.where(step < boundary, rate, after(step - boundary))
        return rate

    return schedule
