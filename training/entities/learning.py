"""The training run."""

import math
import random
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from training.entities.batches import IGNORED, Row, batches, row
from training.entities.corpus import Example
from training.entities.network import TAGS, Network, from_minilm
from training.entities.wordings import Wordings


@dataclass(frozen=True)
class Plan:
    epochs: int = 3
    #: learning rate of the backbone; that of new weights is five times as high
    rate: float = 2e-4
    batch: int = 32
    #: number of made-up sentences, as a share of the real texts
    prose: float = 0.12
    warm: float = 0.08
    #: decay of the running mean of the weights, which is shipped; it is updated every tenth step
    average: float = 0.95
    seed: int = 7


def learn(folder: Path, examples: list[Example], plan: Plan) -> Network:
    """Train a network. `folder` has `model.safetensors` and `tokenizer.json` of MiniLM."""
    torch.manual_seed(plan.seed)
    draw = random.Random(plan.seed)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    wordings = Wordings(examples, draw)

    def epoch() -> list[Row]:
        texts = [*map(wordings.of, examples), *wordings.prose(int(plan.prose * len(examples)))]
        read = (row(tokenizer, text) for text in texts)
        return [one for one in read if (one.tags >= 0).any()]

    network = from_minilm(folder / "model.safetensors")
    # The embeddings of words are not trained, so that words that are not in the sets keep their distance to other
    # words.
    network.words.requires_grad_(requires_grad=False)
    steps = plan.epochs * math.ceil(len(epoch()) / plan.batch)
    optimizer, schedule = _optimizer(network, plan, steps)
    average = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(plan.average))
    network.train()
    # bfloat16 gives equally good results. It is twice as fast on processors that support it, and much slower on others.
    has_bfloat16 = torch.cpu.get_capabilities().get("avx512_bf16", False)
    began, step, smooth = time.monotonic(), 0, 0.0
    for _ in range(plan.epochs):
        for ids, shapes, mask, tags in batches(epoch(), plan.batch, draw):
            with torch.autocast("cpu", torch.bfloat16, enabled=has_bfloat16):
                logits = network(ids, shapes, mask)
            loss = functional.cross_entropy(logits.float().view(-1, TAGS), tags.view(-1), ignore_index=IGNORED)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            step, smooth = step + 1, 0.98 * smooth + 0.02 * loss.item()
            if step % 10 == 0:
                average.update_parameters(network)
            if step % 100 == 0:
                took = time.monotonic() - began
                print(f"{step}/{steps} loss {smooth / (1 - 0.98**step):.4f} {took:.0f} s", flush=True)
    network.load_state_dict(average.module.state_dict())
    return network.eval()


def _optimizer(
    network: Network, plan: Plan, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    new = {"head.weight", "head.bias", "shapes.weight"}
    parts = [(name, part) for name, part in network.named_parameters() if part.requires_grad]
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for name, p in parts if name not in new], "lr": plan.rate},
            {"params": [p for name, p in parts if name in new], "lr": 5 * plan.rate},
        ],
        weight_decay=0.01,
    )
    warm = plan.warm * steps
    return optimizer, torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / warm) * max(0.0, 1.0 - step / steps)
    )
