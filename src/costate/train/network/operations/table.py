"""The operations of torch that an exported network may have, each in terms of steps. A new one is a row and a test.

A row is a function of the builder and of the operation's arguments, in the order of its schema. Constants never come here: an
operation on constants alone is computed once, by torch.
"""

from __future__ import annotations

from costate.train.network.operations import axes, elementwise, layers, sums

ROWS: dict[str, elementwise.Row] = {
    name: (lambda b, *given, f=f: b.pointwise(f, *given)) for name, f in elementwise.FORMULAS.items()
}
SAME = "alias alpha_dropout clone contiguous detach dropout feature_dropout lift_fresh_copy to _to_copy type_as"
ROWS |= dict.fromkeys(SAME.split(), elementwise.same)
ROWS |= {
    "add": elementwise.plus("add"),
    "sub": elementwise.plus("sub"),
    "rsub": lambda b, x, y, alpha=1: elementwise.plus("sub")(b, y, x, alpha),
    "div": elementwise.divide,
    "floor_divide": lambda b, x, y: elementwise.divide(b, x, y, "floor"),
    "pow": elementwise.power,
    "clamp": elementwise.clamp,
    "clip": elementwise.clamp,
    "hardtanh": elementwise.clamp,
    "clamp_min": elementwise.clamp,
    "clamp_max": lambda b, x, high: elementwise.clamp(b, x, None, high),
    "prelu": elementwise.prelu,
    "_prelu_kernel": elementwise.prelu,
    "gelu": elementwise.gelu,
    "elu": lambda b, x, a=1, c=1, inner=1: b.pointwise(elementwise.elu(float(a), float(c), float(inner)), x),
    "celu": lambda b, x, a=1: b.pointwise(elementwise.elu(float(a), 1.0, 1 / float(a)), x),
    "selu": lambda b, x: b.pointwise(elementwise.elu(1.6732632423543772, 1.0507009873554805), x),
    "view": axes.view,
    "reshape": axes.view,
    "_unsafe_view": axes.view,
    "view_as": lambda b, x, like: b.reshape(x, like.shape),
    "flatten": axes.flatten,
    "unflatten": axes.unflatten,
    "squeeze": axes.squeeze,
    "unsqueeze": axes.unsqueeze,
    "permute": axes.permute,
    "transpose": axes.transpose,
    "expand": axes.expand,
    "expand_as": lambda b, x, like: b.expand(x, like.shape),
    "broadcast_to": axes.expand,
    "repeat": axes.repeat,
    "slice": axes.part,
    "narrow": lambda b, x, dim, start, length: axes.part(b, x, dim, start, start + length),
    "select": axes.select,
    "split": axes.split,
    "split_with_sizes": axes.split,
    "chunk": axes.chunk,
    "unbind": axes.unbind,
    "cat": axes.cat,
    "concat": axes.cat,
    "stack": axes.stack,
    "index": axes.indexed,
    "index_select": axes.index_select,
    "flip": axes.flip,
    "sum": sums.total,
    "mean": sums.mean,
    "amax": sums.extreme("max"),
    "amin": sums.extreme("min"),
    "max": sums.largest("max"),
    "min": sums.largest("min"),
    "var": sums.variance,
    "std": sums.deviation,
    "linalg_vector_norm": sums.norm,
    "norm": sums.norm,
    "logsumexp": sums.logsumexp,
    "softmax": sums.softmax,
    "_softmax": sums.softmax,
    "log_softmax": sums.log_softmax,
    "_log_softmax": sums.log_softmax,
    "linear": layers.linear,
    "matmul": layers.matmul,
    "mm": layers.matmul,
    "bmm": layers.matmul,
    "addmm": layers.addmm,
    "layer_norm": layers.layer_norm,
    "native_layer_norm": lambda b, *given: [layers.layer_norm(b, *given), None, None],
    "rms_norm": layers.rms_norm,
    "batch_norm": lambda b, x, w, c, m, v, training, momentum, eps, *_: layers.batch_norm(b, x, w, c, m, v, eps),
    "_native_batch_norm_legit_no_training": lambda b, x, w, c, m, v, momentum, eps: [
        layers.batch_norm(b, x, w, c, m, v, eps)
    ],
    "gru_cell": layers.gru_cell,
    "lstm_cell": layers.lstm_cell,
    "rnn_tanh_cell": layers.rnn_cell(("tanh", "x")),
    "rnn_relu_cell": layers.rnn_cell(elementwise.ABOVE),
    "zeros_like": elementwise.like_value(0.0),
    "ones_like": elementwise.like_value(1.0),
    "full_like": elementwise.like_value(None),
    "new_zeros": elementwise.new_value(0.0),
    "new_ones": elementwise.new_value(1.0),
    "new_full": elementwise.new_value(None),
}
"""Operation of torch -> the steps it is."""


LAYERS = (
    "Linear, LayerNorm, RMSNorm, BatchNorm1d, GRUCell, LSTMCell, RNNCell, the usual activations, Softmax, Dropout, Identity, "
    "Flatten, and the usual operations of tensors between them"
)
"""Layers that there is a form for, in words."""
