"""A language model of letters that trains on its own text, saves as it goes, and goes on wherever it was stopped.

    python train.py runs/a              # again after Ctrl-C, kill -9, or the end of a job: it goes on from the last checkpoint
    scancel --signal=TERM JOB           # or `kill PID`: saves the step it is at, and ends

Needs PyTorch and the package quern. Everything about checkpoints is in the five lines with `manager` and `parts`.
"""
import sys
import time

import torch

import pyquern as quern

STEPS, CONTEXT, BATCH = 2000, 32, 32


class Letters(torch.nn.Module):
    def __init__(self, width=64, heads=4, layers=2):
        super().__init__()
        self.embed = torch.nn.Embedding(128, width)
        self.place = torch.nn.Parameter(torch.zeros(CONTEXT, width))
        layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.1, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = torch.nn.Linear(width, 128)

    def forward(self, letters):
        mask = torch.nn.Transformer.generate_square_subsequent_mask(CONTEXT)
        return self.head(self.layers(self.embed(letters) + self.place, mask=mask, is_causal=True))


def main(store):
    torch.manual_seed(1)
    with open(__file__, encoding="ascii") as file:
        text = torch.tensor(list(file.read().encode()))
    model = Letters()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)

    # All that the next step depends on. RandomState: the generators of Python, NumPy and PyTorch, here batches and dropout.
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule, "random": quern.checkpoint.RandomState()}
    with quern.checkpoint.Manager(store, every=100, minutes=10, keep=3, keep_best=1, metric="loss") as manager:
        found = manager.restore(into=parts)
        if found:
            print(f"goes on after step {found.step}, loss {found.metrics['loss']:.3f}")
        for step in range(found.step + 1 if found else 1, STEPS + 1):
            first = torch.randint(0, len(text) - CONTEXT - 1, (BATCH, 1))
            window = text[first + torch.arange(CONTEXT + 1)]
            loss = torch.nn.functional.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            begun = time.perf_counter()
            saved = manager.step(step, parts, metrics={"loss": loss})
            if saved:
                print(f"step {step}: loss {loss:.3f}, {saved.stored_bytes / 1e6:.2f} of {saved.raw_bytes / 1e6:.2f} MB stored "
                      f"in {1000 * (time.perf_counter() - begun):.0f} ms")
            if manager.should_stop:
                break


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "runs/letters")
