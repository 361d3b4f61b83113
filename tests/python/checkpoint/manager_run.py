"""A training run under the Manager, to be killed: manager_run.py STORE LOG STEPS [EVERY]. Each step adds a line to LOG, its
number and loss to the last bit. Random numbers come from PyTorch (dropout), NumPy (batches) and Python (learning rate)."""
import random
import sys

import numpy as np
import torch

import pyquern as quern


class Model(torch.nn.Module):
    def __init__(self, words=64, width=48):
        super().__init__()
        self.embed = torch.nn.Embedding(words, width)
        self.place = torch.nn.Parameter(torch.zeros(16, width))
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.1, batch_first=True) for _ in range(2))
        self.head = torch.nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight  # tied

    def forward(self, tokens):
        hidden = self.embed(tokens) + self.place
        mask = torch.nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        for layer in self.layers:
            hidden = layer(hidden, src_mask=mask, is_causal=True)
        return self.head(hidden)


def load_all_of_pytorch():
    """What a first step imports, so that forks need not."""
    torch.set_num_threads(1)
    torch.optim.AdamW([torch.zeros(1, requires_grad=True)]).step()


def main(store, log, steps, every=5):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    np.random.seed(2)
    random.seed(3)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step / 100))
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule, "random": quern.checkpoint.RandomState(), "noise": 0.0}
    with quern.checkpoint.Manager(store, every=every, keep=3, keep_every=10 * every, keep_best=1, metric="loss") as manager:
        found = manager.restore(into=parts)
        with open(log, "a") as lines:
            for step in range(found.step + 1 if found else 1, steps + 1):
                first = np.random.randint(0, 64, (8, 1))
                tokens = torch.from_numpy((first + np.arange(17) * np.random.randint(1, 4)) % 64)
                loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
                parts["noise"] = 0.9 * parts["noise"] + 0.001 * random.random()
                optimizer.zero_grad()
                (loss * (1 + parts["noise"])).backward()
                optimizer.step()
                schedule.step()
                lines.write(f"{step} {loss.item().hex()}\n")
                lines.flush()
                manager.step(step, parts, metrics={"loss": loss.item()})
                if manager.should_stop:
                    return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *map(int, sys.argv[4:])))
