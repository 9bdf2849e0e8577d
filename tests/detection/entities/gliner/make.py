"""Creates `model.onnx` in the same folder: a span model with GLiNER's inputs and outputs but without a network, for the
tests of the loader. It finds each word that is the first word of a label in the prompt. Needs the package onnx: `python
make.py`."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ENT = 1


def constant(name: str, value: object) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(value), name)


def node(kind: str, inputs: list[str], output: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, [output], **attributes)


def graph() -> onnx.GraphProto:
    int64, flag = TensorProto.INT64, TensorProto.BOOL
    return helper.make_graph(
        [
            node("Squeeze", ["input_ids", "zero"], "ids"),
            node("Equal", ["ids", "ent"], "is_mark"),
            node("NonZero", ["is_mark"], "marks_2d"),
            node("Squeeze", ["marks_2d", "zero"], "marks"),
            node("Add", ["marks", "one"], "label_places"),
            node("Gather", ["ids", "label_places"], "labels"),
            node("Squeeze", ["words_mask", "zero"], "mask"),
            node("Greater", ["mask", "none"], "opens"),
            node("NonZero", ["opens"], "word_places_2d"),
            node("Squeeze", ["word_places_2d", "zero"], "word_places"),
            node("Gather", ["ids", "word_places"], "words"),
            node("Unsqueeze", ["words", "one"], "words_2d"),
            node("Unsqueeze", ["labels", "zero"], "labels_2d"),
            node("Equal", ["words_2d", "labels_2d"], "same"),
            node("Squeeze", ["span_idx", "zero"], "spans"),
            node("Split", ["spans"], "firsts_2d", axis=1, num_outputs=2),
            node("Squeeze", ["firsts_2d", "one"], "firsts"),
            node("Squeeze", ["lasts_2d", "one"], "lasts"),
            node("Gather", ["same", "firsts"], "same_by_span"),
            node("Equal", ["firsts", "lasts"], "single"),
            node("Unsqueeze", ["single", "one"], "single_2d"),
            node("And", ["same_by_span", "single_2d"], "hit"),
            node("Cast", ["hit"], "hit_score", to=TensorProto.FLOAT),
            node("Mul", ["hit_score", "ten"], "raised"),
            node("Sub", ["raised", "five"], "flat"),
            node("Squeeze", ["text_lengths", "one"], "length"),
            node("Shape", ["labels"], "label_count"),
            node("Concat", ["one", "length", "rest", "label_count"], "form", axis=0),
            node("Reshape", ["flat", "form"], "logits"),
        ],
        "gliner",
        [
            helper.make_tensor_value_info("input_ids", int64, [1, "tokens"]),
            helper.make_tensor_value_info("attention_mask", int64, [1, "tokens"]),
            helper.make_tensor_value_info("words_mask", int64, [1, "tokens"]),
            helper.make_tensor_value_info("text_lengths", int64, [1, 1]),
            helper.make_tensor_value_info("span_idx", int64, [1, "spans", 2]),
            helper.make_tensor_value_info("span_mask", flag, [1, "spans"]),
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, "words", "width", "labels"])],
        [
            constant("zero", [0]),
            constant("one", [1]),
            constant("none", 0),
            constant("ent", ENT),
            constant("rest", [-1]),
            constant("ten", np.float32(10)),
            constant("five", np.float32(5)),
        ],
    )


def main() -> None:
    made = graph()
    split = next(one for one in made.node if one.op_type == "Split")
    split.output.append("lasts_2d")
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, str(Path(__file__).with_name("model.onnx")))


if __name__ == "__main__":
    main()
