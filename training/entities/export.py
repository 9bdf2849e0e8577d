"""Exports a trained network to the int8 ONNX file that is shipped."""

import tempfile
from pathlib import Path

import onnx
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic

from training.entities.network import Network


def export(network: Network, target: Path, *, keep: tuple[str, ...] = ()) -> None:
    """Export a network. `keep` are the names of matrix products that stay fp32."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.onnx"
        export_plain(network, plain)
        quantize_dynamic(
            plain,
            target,
            per_channel=True,
            # Weights have seven bits, so that sums of two products fit into 16 bits on processors without VNNI.
            reduce_range=True,
            weight_type=QuantType.QInt8,
            op_types_to_quantize=["MatMul", "Gather"],
            nodes_to_exclude=list(keep),
        )


def export_plain(network: Network, target: Path) -> None:
    network.eval()
    # Two tensors are needed, because the exporter would treat the same object as one input.
    ids, shapes = torch.ones(1, 9, dtype=torch.long), torch.zeros(1, 9, dtype=torch.long)
    length = torch.export.Dim("length", min=2, max=512)
    program = torch.onnx.export(
        network,
        (ids, shapes),
        input_names=["ids", "shapes"],
        output_names=["logits"],
        dynamic_shapes={"ids": {1: length}, "shapes": {1: length}},
        opset_version=18,
        dynamo=True,
    )
    if program is None:
        raise RuntimeError("the exporter gave nothing")
    program.save(str(target))
    onnx.checker.check_model(onnx.load(str(target)))
