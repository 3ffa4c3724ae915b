"""holdfast.nn, optimizers and utils beside MLX's, where that is installed: the same expressions with the same random numbers. And by themselves."""

import importlib.util
import json
import math
import os
import subprocess
import sys

import pytest

import holdfast.core as mx
import holdfast.nn as nn
import holdfast.optimizers as optim
from holdfast import utils
from test_mlx_packages import folder_of_mlx
from test_package import ENVIRONMENT

X = "mx.array([[-2., -0.7, -0.1, 0.], [0.2, 0.6, 3.5, 7.]])"
ACTIVATIONS = ("sigmoid relu relu2 relu6 leaky_relu log_softmax softmax softmin elu softplus softsign softshrink celu silu log_sigmoid gelu gelu_approx "
               "gelu_fast_approx glu step selu mish hardswish hard_tanh hard_shrink tanh").split()
MODULES = ("Sigmoid ReLU ReLU2 ReLU6 LeakyReLU ELU CELU SELU SiLU Mish GLU Step Softmax Softmin LogSoftmax LogSigmoid Softplus Softsign Softshrink HardShrink "
           "HardTanh Hardswish Tanh PReLU GELU").split()
LAYERS = {  # a layer: shapes of its inputs
    "Linear(4, 3)": [(2, 4)], "Linear(4, 3, bias=False)": [(2, 4)], "Bilinear(4, 5, 3)": [(2, 4), (2, 5)], "Conv1d(4, 6, 3, 2, 1, 1, 2)": [(2, 7, 4)],
    "Conv2d(4, 6, 3, stride=2, padding=1, groups=2)": [(2, 7, 7, 4)], "Conv2d(4, 6, (3, 2), padding=(1, 0), bias=False)": [(2, 7, 7, 4)],
    "Conv3d(2, 3, 2)": [(1, 4, 4, 4, 2)], "ConvTranspose1d(4, 3, 3, 2, 1, 1, 1)": [(2, 5, 4)], "ConvTranspose2d(4, 3, 3, 2)": [(2, 5, 5, 4)],
    "ConvTranspose3d(2, 3, 2, 2)": [(1, 3, 3, 3, 2)], "LayerNorm(4)": [(2, 4)], "LayerNorm(4, affine=False)": [(2, 4)], "LayerNorm(4, bias=False)": [(2, 4)],
    "RMSNorm(4)": [(2, 4)], "InstanceNorm(4, affine=True)": [(2, 5, 4)], "GroupNorm(2, 4)": [(2, 5, 5, 4)],
    "GroupNorm(2, 4, pytorch_compatible=True)": [(2, 5, 5, 4)], "BatchNorm(4)": [(6, 4)], "BatchNorm(4, affine=False, track_running_stats=False)": [(6, 4)],
    "MaxPool1d(3, 2, 1)": [(2, 7, 2)], "MaxPool2d((3, 2), stride=1, padding=1)": [(2, 6, 6, 2)], "MaxPool3d(2, 1)": [(1, 4, 4, 4, 2)],
    "AvgPool1d(3, 2, 1)": [(2, 7, 2)], "AvgPool2d((3, 2), stride=1, padding=1)": [(2, 6, 6, 2)], "AvgPool3d(2, 1)": [(1, 4, 4, 4, 2)],
    "GRU(3, 4)": [(2, 5, 3)], "GRU(3, 4, bias=False)": [(5, 3)], "LSTM(3, 4)": [(2, 5, 3)], "RNN(3, 4, nonlinearity=nn.relu)": [(5, 3)], "Dropout(0.4)": [(4, 5)],
    "Dropout2d(0.4)": [(2, 4, 4, 3)], "Dropout3d(0.4)": [(2, 3, 3, 3, 2)], "MultiHeadAttention(8, 2, bias=True)": [(2, 3, 8), (2, 4, 8), (2, 4, 8)],
    "RoPE(4)": [(1, 3, 4)], "RoPE(4, True, 100.0, 0.5)": [(1, 2, 3, 4)], "SinusoidalPositionalEncoding(8, cos_first=True, full_turns=True)": [(3,)],
    "ALiBi()": [(1, 4, 3, 5)], "Sequential(nn.Linear(4, 3), nn.relu, nn.Linear(3, 2))": [(2, 4)], "QuantizedLinear(64, 3)": [(2, 64)],
    "QuantizedLinear(64, 3, mode='mxfp4')": [(2, 64)], "Upsample((1.5, 2.0))": [(1, 4, 3, 1)], "Upsample(2, 'linear', True)": [(1, 3, 2, 2)],
    "Upsample((1.5, 2.0), 'linear')": [(1, 4, 3, 1)], "Upsample(2, 'cubic')": [(1, 3, 2, 2)], "Conv2d(3, 6, 3, groups=2)": [(1, 4, 4, 3)],
    "Dropout(1.0)": [(2, 2)], "MaxPool2d(2)": [(4, 4)], "MultiHeadAttention(7, 2)": [(1, 2, 7)]}
LOSSES = ("cross_entropy(A, Y, reduction='mean') cross_entropy(A, mx.softmax(B,axis=-1), label_smoothing=0.1) cross_entropy(A, Y, reduction='bad') "
          "cross_entropy(A, Y, weights=mx.arange(4.0), label_smoothing=0.2) cross_entropy(A, mx.array([0, 1, 2, 3, 0]), axis=0) "
          "binary_cross_entropy(A, P) binary_cross_entropy(P, P, with_logits=False, reduction='none') "
          "binary_cross_entropy(mx.array([0.0, 1.0]), mx.array([0.0, 0.0]), with_logits=False) l1_loss(A, B) mse_loss(A, B) mse_loss(A, mx.ones(3)) "
          "nll_loss(A, Y) gaussian_nll_loss(A, B, P, full=True) kl_div_loss(A, B) smooth_l1_loss(A, B, beta=0.5) triplet_loss(A, B, P) hinge_loss(A, B) "
          "huber_loss(A, B) log_cosh_loss(A, B) cosine_similarity_loss(A, B) margin_ranking_loss(A, B, mx.sign(P))").replace(") ", ")\n").splitlines()
INITS = ["constant(2.0)(Z)", "normal(1.0, 0.5)(Z)", "uniform(-1, 2)(Z)", "identity()(mx.zeros((3, 3)))", "identity()(Z)", "glorot_normal()(Z)",
         "glorot_uniform()(Z, 2.0)", "he_normal()(Z)", "he_uniform()(Z, 'fan_out', 2.0)", "he_uniform()(mx.zeros((4, 3, 3, 6)))", "he_normal()(Z, 'x')"]
OPTIMIZERS = ["SGD(R)", "SGD(R, momentum=0.9)", "SGD(R, momentum=0.9, nesterov=True, weight_decay=0.1)", "SGD(R, momentum=0.9, dampening=0.3)", "RMSprop(R)",
              "Adagrad(R)", "AdaDelta(R)", "Adam(R)", "Adam(R, bias_correction=True)", "AdamW(R, weight_decay=0.3)", "Adamax(R)", "Lion(R, weight_decay=0.1)",
              "Muon(R)", "Muon(R, nesterov=False, weight_decay=0.0)", "Adafactor(R, relative_step=False)", "Adafactor()", "Adafactor(warmup_init=True)",
              "Adafactor(R, relative_step=False, beta_1=0.9, weight_decay=0.1)", "SGD(R, nesterov=True)",
              "MultiOptimizer([optim.Muon(R), optim.AdamW(R)], [lambda path, gradient: gradient.ndim >= 2])"]
SCHEDULES = ["exponential_decay(0.1, 0.9)", "step_decay(0.1, 0.9, 3)", "cosine_decay(0.1, 5, 0.01)", "linear_schedule(0, 0.1, 4)", "linear_schedule(0, 1, 0)",
             "join_schedules([optim.linear_schedule(0, 0.1, 3), optim.cosine_decay(0.1, 5)], [3])"]
TREES = ["tree_flatten(T)", "tree_flatten(T, destination={})", "tree_unflatten(utils.tree_flatten(T))", "tree_map(lambda a, b: a + b, T, T)",
         "tree_map_with_path(lambda p, v: (p, v), T)", "tree_reduce(lambda a, b: a + b, T, 0)", "tree_flatten(T, '.x')", "tree_unflatten([('0.a', 1), ('2', 3)])",
         "tree_flatten(T, is_leaf=lambda v: isinstance(v, list))", "tree_unflatten([('a.0', 1), ('a.10', 2), ('a.2', 3)])", "tree_merge({'a': 1}, {'b': 2})",
         "tree_merge({'a': {'x': 1}}, {'a': {'y': 2}})", "tree_merge({'a': 1}, {'a': 2})"]
EXPRESSIONS = {
    **{f"nn.{name}(X)": None for name in ACTIVATIONS}, **{f"[nn.{name}()(X), repr(nn.{name}())]": None for name in MODULES},
    **{f"look(nn.{layer}, {shapes})": None for layer, shapes in LAYERS.items()}, **{f"nn.losses.{loss}": None for loss in LOSSES},
    **{f"nn.init.{init}": None for init in INITS}, **{f"[optim.{schedule}(mx.array(k)) for k in range(9)]": None for schedule in SCHEDULES},
    **{f"steps(lambda R: optim.{optimizer}, {rate})": None for optimizer in OPTIMIZERS for rate in ("0.1", "optim.exponential_decay(0.1, 0.9)")},
    **{f"utils.{tree}": None for tree in TREES}, "optim.clip_grad_norm({'a': mx.array([3.0, 4.0]), 'b': [mx.array([12.0])]}, 2.0)": None,
    "frozen()": None, "nn.value_and_grad(nn.Linear(4, 1), lambda x: x.sum())(X)": None,
    "[nn.Transformer(8, 2, 1, 1, 16)(mx.ones((2, 3, 8)), mx.ones((2, 4, 8)), None, None, None)]": None,
    "nn.MultiHeadAttention.create_additive_causal_mask(3, mx.float16)": None,
}

PROGRAM = '''
import json, sys
SETUP
mx.set_default_device(mx.cpu)


def shown(value):
    if isinstance(value, mx.array):
        return [str(value.dtype).rpartition(".")[2], list(value.shape), [x if x == x and abs(x) < 1e30 else repr(x) for x in value.astype(mx.float32).reshape(-1).tolist()]]
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    return value if isinstance(value, (int, float, str, type(None))) else type(value).__name__


def look(layer, shapes):
    inputs = [mx.random.normal(shape) for shape in shapes]
    return [layer(*inputs), layer.parameters(), layer.trainable_parameters(), "RNN" if "nonlinearity" in repr(layer) else repr(layer), layer.eval()(*inputs)]


def steps(make, rate):
    model, optimizer = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 2)), make(rate)
    for k in range(4):
        optimizer.update(model, utils.tree_map(lambda p: mx.sin(p * (k + 2)), model.trainable_parameters()))
    return [model.parameters(), dict(utils.tree_flatten(optimizer.state))]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self._hidden, self.n = mx.ones(2), mx.ones(1), 5
        self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
        self.d = {"k": nn.ReLU(), "p": mx.zeros(3)}


def frozen():
    model, result = Model(), []
    names = lambda tree: sorted(name for name, _ in utils.tree_flatten(tree))
    result += [names(model.parameters()), repr(model), sorted(name for name, _ in model.named_modules())]
    result.append(names(model.freeze().trainable_parameters()))
    result.append(names(model.unfreeze(keys="weight").trainable_parameters()))
    result.append(names(model.unfreeze(recurse=False).trainable_parameters()))
    model.set_dtype(mx.float16)
    result += [sorted({str(v.dtype).rpartition(".")[2] for _, v in utils.tree_flatten(model.parameters())}), [m.training for m in model.eval().modules()]]
    for change in (lambda: model.update({"zz": mx.ones(1)}), lambda: model.update({"w": 3}), lambda: model.load_weights([("w", mx.ones(2))]),
                   lambda: model.load_weights([("w", mx.ones(2) * 4)], strict=False).w, lambda: model.zz, lambda: model.freeze(keys="zz", strict=True),
                   lambda: model.update_modules({"layers": [{}, nn.ReLU()]}).layers, lambda: model.update_modules({"w": nn.ReLU()}),
                   lambda: model.save_weights("weights.foo"), lambda: model.update({"layers": [{"weight": mx.zeros((2, 2))}]}).layers[0].weight):
        try:
            result.append(change())
        except Exception as error:
            result.append(type(error).__name__)
    return result


X = mx.array([[-2., -0.7, -0.1, 0.], [0.2, 0.6, 3.5, 7.]])
mx.random.seed(7)
A, B, Y, Z, T = mx.random.normal((4, 5)), mx.random.normal((4, 5)), mx.array([0, 4, 2, 1]), mx.zeros((4, 6)), {"a": [1, {"b": 2}], "c": (3, 4), "d": {}}
P = mx.sigmoid(A)
results = {}
for expression in json.load(sys.stdin):
    mx.random.seed(5)
    try:
        results[expression] = shown(eval(expression))
    except Exception as error:
        results[expression] = type(error).__name__
print(json.dumps(results))
'''
OURS = "import holdfast.core as mx, holdfast.nn as nn, holdfast.optimizers as optim\nfrom holdfast import utils"
THEIRS = "import mlx.core as mx, mlx.nn as nn, mlx.optimizers as optim\nfrom mlx import utils"


def run(setup, **environment):
    result = subprocess.run([sys.executable, "-c", PROGRAM.replace("SETUP", setup)], input=json.dumps(list(EXPRESSIONS)), capture_output=True, text=True,
                            env={**ENVIRONMENT, **environment})
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def close(a, b):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[key], b[key]) for key in a)
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 2e-4 * max(1, abs(b))
    return a == b


@pytest.mark.skipif(folder_of_mlx() is None, reason="mlx is not installed")
def test_beside_mlx():
    theirs = run(THEIRS, PYTHONPATH=folder_of_mlx(), HOLDFAST_AS_MLX="0")
    ours = run(OURS)
    different = {name: (ours[name], theirs[name]) for name in theirs if not close(ours[name], theirs[name])}
    assert not different


def test_every_expression_gives_something():
    ours = run(OURS)
    refused = {name for name, value in ours.items() if isinstance(value, str) and value.endswith("Error")}
    assert len(refused) == 12, refused


def test_a_model_learns():
    mx.random.seed(1)
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    x = mx.random.normal((64, 2))
    y = (x[:, :1] * x[:, 1:] > 0).astype(mx.float32)
    optimizer = optim.Adam(1e-2)

    def loss(model, x, y):
        return nn.losses.binary_cross_entropy(model(x), y)

    step, state = nn.value_and_grad(model, loss), [model.state, optimizer.state]

    def train(x, y):
        value, gradients = step(model, x, y)
        optimizer.update(model, gradients)
        return value

    train(x, y)  # makes the state
    train = mx.compile(train, inputs=state, outputs=state)
    losses = [train(x, y).item() for _ in range(200)]
    assert losses[-1] < 0.5 * losses[0] and math.isfinite(losses[-1])


def test_checkpointed_layers_have_the_same_gradient():
    x = mx.random.normal((2, 3, 8))
    gradients = []
    for checkpoint in (False, True):
        mx.random.seed(2)
        model = nn.TransformerEncoder(2, 8, 2, 16, checkpoint=checkpoint)
        gradients.append(nn.value_and_grad(model, lambda m: (m(x, None) ** 2).mean())(model)[1])
    plain, checkpointed = (dict(utils.tree_flatten(g)) for g in gradients)
    assert plain.keys() == checkpointed.keys() and all(mx.allclose(plain[key], checkpointed[key], atol=1e-5).item() for key in plain)


def test_weights_in_files(tmp_path):
    for name in ("weights.npz", "weights.safetensors"):
        model, other = nn.Linear(3, 2), nn.Linear(3, 2)
        model.save_weights(str(tmp_path / name))
        assert mx.array_equal(other.load_weights(str(tmp_path / name)).weight, model.weight).item()


def test_a_quantised_model():
    model = nn.Sequential(nn.Embedding(10, 64), nn.Linear(64, 64), nn.LayerNorm(64), nn.Linear(64, 32, bias=False))
    tokens = mx.array([1, 2])
    before = model(tokens)
    nn.quantize(model, 32, 8, class_predicate=lambda path, layer: {"group_size": 64, "bits": 8} if path.endswith("1") else hasattr(layer, "to_quantized"))
    assert [type(layer).__name__ for layer in model.layers] == ["QuantizedEmbedding", "QuantizedLinear", "LayerNorm", "QuantizedLinear"]
    assert model.layers[1].group_size == 64 and mx.abs(model(tokens) - before).max().item() < 0.2
    assert not model.layers[1].unfreeze().trainable_parameters()


# Neither MLX nor anything else that is installed: this package, as pip puts it into a folder of packages.
ALONE = """
import site, sys
sys.path[:] = [p for p in sys.path if "site-packages" not in p and "dist-packages" not in p]
site.addsitedir(FOLDER)
import mlx.core as mx, mlx.nn as nn, mlx.optimizers as optim
from mlx.utils import tree_flatten
from mlx.nn.layers.quantized import QuantizedLinear
import mlx.nn.layers.base, mlx.nn.losses, mlx.optimizers.schedulers, mlx.core.random, mlx.nn.layers.distributed
import holdfast.core, holdfast.nn
assert mx is holdfast.core and nn is holdfast.nn and mx.__spec__.name == "holdfast.core" and mlx.nn.layers.base.Module is nn.Module
assert mx.__version__.startswith("0.32") and QuantizedLinear is nn.QuantizedLinear
print(nn.Linear(2, 3)(mx.ones((1, 2))).shape)
try:
    import mlx.nonsense
except ModuleNotFoundError as error:
    print(error.name)
"""


def test_without_a_package_of_mlx():
    folder = os.path.dirname(os.path.dirname(os.path.abspath(mx.__file__)))
    folder = folder if os.path.exists(os.path.join(folder, "holdfast_as_mlx.pth")) else os.path.dirname(folder)

    def alone(code, **environment):
        return subprocess.run([sys.executable, "-S", "-c", code.replace("FOLDER", repr(folder))], capture_output=True, text=True,
                              env={key: value for key, value in {**os.environ, **environment}.items() if key != "PYTHONPATH"})

    result = alone(ALONE)
    assert result.stdout.splitlines() == ["(1, 3)", "mlx.nonsense"], result.stderr
    assert "No module named 'mlx'" in alone(ALONE, HOLDFAST_AS_MLX="0").stderr


def test_it_costs_nothing_until_it_is_asked_for():
    code = "import holdfast_as_mlx, sys; holdfast_as_mlx.hook(); assert 'holdfast' not in sys.modules and 'mlx' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, check=True)
    assert importlib.util.find_spec("holdfast_as_mlx") is not None
