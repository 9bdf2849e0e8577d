"""Creates the two small models in the same folder. Needs onnx, which no test needs:

python tests/detection/semantic/models/make.py
"""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

HERE = Path(__file__).parent
WORDS = ["[UNK]", "ignore", "rules", "dan", "banana", "apple", "fruit", "gun", "rifle", "weapon"]
#: The scores of each word for the classes SAFE, INJECTION and JAILBREAK.
CLASSES = [[0.1, 0, 0], [0, 6, 0], [0, 6, 0], [0, 0, 9], *[[1, 0, 0]] * 6]
#: Vectors: words for fruit have one direction, words for weapons the other.
VECTORS = [[0.2, 0.2], [0.2, 0.2], [0.2, 0.2], [0.2, 0.2], [1, 0], [0.9, 0.1], [1, 0.1], [0, 1], [0.1, 0.9], [0.1, 1]]


def write(name: str, table: list[list[float]], output: str, *, summed: bool, config: dict[str, object]) -> None:
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["words" if summed else output])]
    initializers = [numpy_helper.from_array(np.array(table, dtype=np.float32), "table")]
    if summed:
        initializers.append(numpy_helper.from_array(np.array([1], dtype=np.int64), "axis"))
        nodes.append(helper.make_node("ReduceSum", ["words", "axis"], [output], keepdims=0))
    width = len(table[0])
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "tokens"])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", *([] if summed else ["tokens"]), width])],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    onnx.save(model, folder / "model.onnx")
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


if __name__ == "__main__":
    write(
        "guard",
        CLASSES,
        "logits",
        summed=True,
        config={"id2label": {"0": "SAFE", "1": "INJECTION", "2": "JAILBREAK"}, "max_position_embeddings": 34},
    )
    write("vectors", VECTORS, "last_hidden_state", summed=False, config={"max_position_embeddings": 512})
