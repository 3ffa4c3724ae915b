"""Losses. `reduction` is "none", "mean" or "sum"."""

from __future__ import annotations

import math

import holdfast.core as mx


def _reduced(loss, reduction):
    if reduction == "mean":
        return mx.mean(loss)
    if reduction == "sum":
        return mx.sum(loss)
    if reduction == "none":
        return loss
    raise ValueError(f"[losses] reduction must be none, mean or sum, got {reduction!r}")


def _check_shapes(a, b, who="losses"):
    if a.shape != b.shape:
        raise ValueError(f"[{who}] inputs of shape {a.shape} and targets of shape {b.shape} must have the same shape")


def cross_entropy(logits: mx.array, targets: mx.array, weights: mx.array | None = None, axis: int = -1, label_smoothing: float = 0.0,
                  reduction: str = "none") -> mx.array:
    """The cross entropy of softmax(logits), with targets that are classes or probabilities."""
    if label_smoothing < 0 or label_smoothing >= 1:
        raise ValueError(f"[cross_entropy] label_smoothing must be in [0, 1), got {label_smoothing}")
    as_probabilities = targets.ndim == logits.ndim
    without_axis = [size for i, size in enumerate(logits.shape) if i != axis % logits.ndim]
    if as_probabilities and targets.shape != logits.shape or not as_probabilities and list(targets.shape) != without_axis:
        raise ValueError(f"[cross_entropy] targets of shape {targets.shape} fit no logits of shape {logits.shape}")
    if as_probabilities:
        score = mx.sum(logits * targets, axis=axis)
    else:
        score = mx.take_along_axis(logits, mx.expand_dims(targets, axis), axis).squeeze(axis)
    total = mx.logsumexp(logits, axis=axis)
    if label_smoothing > 0:
        loss = total - (1 - label_smoothing) * score - label_smoothing * mx.mean(logits, axis=axis)
    else:
        loss = total - score
    if weights is not None:
        if weights.shape != loss.shape:
            raise ValueError(f"[cross_entropy] weights must have the shape of the loss, {loss.shape}, got {weights.shape}")
        loss = loss * weights
    return _reduced(loss, reduction)


def binary_cross_entropy(inputs: mx.array, targets: mx.array, weights: mx.array | None = None, with_logits: bool = True, reduction: str = "mean") -> mx.array:
    """The cross entropy of two classes; inputs are logits, or probabilities."""
    _check_shapes(inputs, targets, "binary_cross_entropy")
    if with_logits:
        loss = mx.logaddexp(0.0, inputs) - inputs * targets
    else:
        # Probabilities of zero cost 100, not infinity.
        loss = -(targets * mx.clip(mx.log(inputs), -100, None) + (1 - targets) * mx.clip(mx.log(1 - inputs), -100, None))
    if weights is not None:
        if weights.shape != loss.shape:
            raise ValueError(f"[binary_cross_entropy] weights must have the shape of the loss, {loss.shape}, got {weights.shape}")
        loss = loss * weights
    return _reduced(loss, reduction)


def l1_loss(predictions: mx.array, targets: mx.array, reduction: str = "mean") -> mx.array:
    """|predictions - targets|."""
    _check_shapes(predictions, targets, "l1_loss")
    return _reduced(mx.abs(predictions - targets), reduction)


def mse_loss(predictions: mx.array, targets: mx.array, reduction: str = "mean") -> mx.array:
    """(predictions - targets)^2."""
    _check_shapes(predictions, targets, "mse_loss")
    return _reduced(mx.square(predictions - targets), reduction)


def nll_loss(inputs: mx.array, targets: mx.array, axis: int = -1, reduction: str = "none") -> mx.array:
    """The negative logarithmic probabilities of the targets."""
    return _reduced(-mx.take_along_axis(inputs, mx.expand_dims(targets, axis), axis).squeeze(axis), reduction)


def gaussian_nll_loss(inputs: mx.array, targets: mx.array, vars: mx.array, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> mx.array:
    """The negative logarithmic likelihood of targets under normal distributions with means `inputs`."""
    _check_shapes(inputs, targets, "gaussian_nll_loss")
    _check_shapes(inputs, vars, "gaussian_nll_loss")
    vars = mx.maximum(vars, eps)
    loss = 0.5 * (mx.log(vars) + mx.square(targets - inputs) / vars)
    return _reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def kl_div_loss(inputs: mx.array, targets: mx.array, axis: int = -1, reduction: str = "none") -> mx.array:
    """The divergence of two distributions, given as logarithms."""
    return _reduced(mx.sum(mx.exp(targets) * (targets - inputs), axis), reduction)


def smooth_l1_loss(predictions: mx.array, targets: mx.array, beta: float = 1.0, reduction: str = "mean") -> mx.array:
    """Quadratic below beta, linear above."""
    _check_shapes(predictions, targets, "smooth_l1_loss")
    distance = mx.abs(predictions - targets)
    return _reduced(mx.where(distance < beta, 0.5 * mx.square(distance) / beta, distance - 0.5 * beta), reduction)


def triplet_loss(anchors: mx.array, positives: mx.array, negatives: mx.array, axis: int = -1, p: int = 2, margin: float = 1.0, eps: float = 1e-6,
                 reduction: str = "none") -> mx.array:
    """How much farther the negatives should be than the positives."""
    def distance(other):
        return mx.power(mx.power(mx.abs(anchors - other), p).sum(axis) + eps, 1 / p)

    return _reduced(mx.maximum(distance(positives) - distance(negatives) + margin, 0), reduction)


def hinge_loss(inputs: mx.array, targets: mx.array, reduction: str = "none") -> mx.array:
    """max(1 - inputs * targets, 0)."""
    return _reduced(mx.maximum(1 - inputs * targets, 0), reduction)


def huber_loss(inputs: mx.array, targets: mx.array, delta: float = 1.0, reduction: str = "none") -> mx.array:
    """Quadratic up to delta, linear above, without a step in the slope."""
    distance = mx.abs(inputs - targets)
    return _reduced(mx.where(distance <= delta, 0.5 * mx.square(distance), delta * (distance - 0.5 * delta)), reduction)


def log_cosh_loss(inputs: mx.array, targets: mx.array, reduction: str = "none") -> mx.array:
    """log(cosh(inputs - targets))."""
    errors = inputs - targets
    return _reduced(mx.logaddexp(errors, -errors) - math.log(2), reduction)


def cosine_similarity_loss(x1: mx.array, x2: mx.array, axis: int = 1, eps: float = 1e-8, reduction: str = "none") -> mx.array:
    """The cosine of the angle between vectors."""
    lengths = mx.linalg.norm(x1, axis=axis) * mx.linalg.norm(x2, axis=axis)
    return _reduced(mx.sum(x1 * x2, axis=axis) / mx.maximum(lengths, eps), reduction)


def margin_ranking_loss(inputs1: mx.array, inputs2: mx.array, targets: mx.array, margin: float = 0.0, reduction: str = "none") -> mx.array:
    """max(-targets * (inputs1 - inputs2) + margin, 0): targets say with 1 and -1 which input should be larger."""
    if not inputs1.shape == inputs2.shape == targets.shape:
        raise ValueError(f"[margin_ranking_loss] shapes must be the same, got {inputs1.shape}, {inputs2.shape} and {targets.shape}")
    return _reduced(mx.maximum(0, -targets * (inputs1 - inputs2) + margin), reduction)
