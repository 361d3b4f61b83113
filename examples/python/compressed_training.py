"""Trains small models on data that is held compressed, at several bounds, and sets their quality against the ratio.

    pip install pyquern torch scikit-learn
    python compressed_training.py -o quality.svg

Three real sets that scikit-learn ships: images of digits (which digit), measurements of tumours (malignant or not), and a
photograph (pixels between those of every second row and column). Only training data is compressed; quality is measured on
data that no model has seen, uncompressed, and is the mean of --seeds runs."""
import argparse
import math
import statistics

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_sample_image
from torch import nn
from torch.utils.data import DataLoader

from pyquern.torch import BlockSampler, CompressedDataset

BOUNDS = (None, 1e-3, 1e-2, 3e-2, 1e-1, 2e-1, 4e-1)


def halves(values, targets):
    """Training and test parts: every third sample is for the test."""
    is_test = np.arange(len(values)) % 3 == 2
    return values[~is_test], targets[~is_test], torch.from_numpy(values[is_test]), torch.from_numpy(targets[is_test])


def digits():
    found = load_digits()
    images = (found.images / 16).astype("f4")[:, None]
    return halves(images, found.target)


def digits_model():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
                         nn.Flatten(), nn.Linear(32 * 16, 10))


def tumours():
    found = load_breast_cancer()
    values = found.data.astype("f4")
    return halves((values - values.mean(0)) / values.std(0), found.target)


def tumours_model():
    return nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 2))


def photograph():
    """Patches of one picture; the model sees every second row and column of each."""
    grey = (load_sample_image("china.jpg").mean(axis=2) / 255).astype("f4")
    patches = np.stack([grey[y:y + 32, x:x + 32] for y in range(0, grey.shape[0] - 31, 32) for x in range(0, grey.shape[1] - 31, 32)])
    patches = patches[:, None]
    return halves(patches, np.zeros(len(patches), np.int64))


class Doubling(nn.Module):
    """Rows and columns between: of a bilinear guess, what a small network adds to it."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 24, 5, padding=2), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU(),
                                  nn.Conv2d(24, 1, 3, padding=1))

    def forward(self, patches):
        guess = nn.functional.interpolate(patches[:, :, ::2, ::2], scale_factor=2, mode="bilinear")
        return guess + self.body(guess)


def class_loss(model, values, targets):
    return nn.functional.cross_entropy(model(values), targets)


def accuracy(model, values, targets):
    return (model(values).argmax(1) == targets).double().mean().item()


def patch_loss(model, values, targets):
    return (model(values) - values).square().mean()


def patch_psnr(model, values, targets):
    return -10 * math.log10(patch_loss(model, values, targets).item())


SETS = {"digits": (digits, digits_model, class_loss, accuracy, "accuracy", 12, 3e-3),
        "tumours": (tumours, tumours_model, class_loss, accuracy, "accuracy", 20, 3e-3),
        "photograph": (photograph, Doubling, patch_loss, patch_psnr, "PSNR, dB", 25, 2e-3)}


def trained(make_model, loss, data, epochs, rate, seed):
    torch.manual_seed(seed)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), rate)
    loader = DataLoader(data, batch_size=32, sampler=BlockSampler(data))
    for _ in range(epochs):
        for values, targets in loader:
            optimizer.zero_grad()
            loss(model, values, targets).backward()
            optimizer.step()
    return model.eval()


def measured(name, seeds):
    """[(bound, ratio, quality, standard deviation over the seeds)] of a set; of bound None, nothing is lost or compressed."""
    make_data, make_model, loss, quality, _, epochs, rate = SETS[name]
    values, targets, test_values, test_targets = make_data()
    rows = []
    for bound in BOUNDS:
        data = CompressedDataset(values, targets, lossless=True) if bound is None else CompressedDataset(values, targets, rel=bound)
        runs = []
        for seed in range(seeds):
            model = trained(make_model, loss, data, epochs, rate, seed)
            with torch.no_grad():
                runs.append(quality(model, test_values, test_targets))
        rows.append((bound, 1.0 if bound is None else data.ratio, statistics.mean(runs), statistics.stdev(runs) if seeds > 1 else 0.0))
        shown = "raw" if bound is None else f"{bound:g}"
        print(f"{name:<11} {shown:>6} {rows[-1][1]:8.1f}x {rows[-1][2]:9.4f} +- {rows[-1][3]:.4f} {rows[-1][2] / rows[0][2]:8.1%}", flush=True)
    return rows


def picture(results):
    """Quality as a part of that of raw data, over the ratio on a logarithmic axis, as SVG; below 90 % at the lower edge."""
    most = max(row[1] for rows in results.values() for row in rows)
    low = 0.9

    def x(ratio):
        return 60 + 480 * math.log(ratio) / math.log(most)

    def y(part):
        return 300 - 270 * (max(part, low) - low) / (1.02 - low)

    lines = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 350" font-family="sans-serif" font-size="13">',
             '<rect width="600" height="350" fill="#fff"/><path d="M60 20V300H550" fill="none" stroke="#333"/>',
             '<text x="300" y="340" text-anchor="middle">raw bytes over compressed bytes</text><text x="10" y="14">quality, of that of raw data</text>',
             f'<path d="M60 {y(0.99):.1f}H550" stroke="#777" stroke-dasharray="4 3"/>']
    lines += [f'<text x="{x(r):.1f}" y="318" text-anchor="middle">{r}x</text>' for r in (1, 2, 5, 10, 20, 50, 100, 200) if r <= most]
    lines += [f'<text x="54" y="{y(part) + 4:.1f}" text-anchor="end">{part:.0%}</text>' for part in (1.0, 0.99, low)]
    for place, (name, rows) in enumerate(results.items()):
        colour, dash = (("#0072b2", ""), ("#d55e00", "6 3"), ("#009e73", "2 3"))[place % 3]
        points = [(x(row[1]), y(row[2] / rows[0][2])) for row in rows]
        lines.append(f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>')
        lines += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4" fill="{colour}"/>' for a, b in points]
        lines.append(f'<text x="80" y="{240 + 18 * place}" fill="{colour}">{name}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--seeds", type=int, default=3, help="runs a bound (default: 3)")
    parser.add_argument("-o", "--output", help="a plot, as SVG")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("set            rel     ratio   quality               of raw")
    results = {name: measured(name, arguments.seeds) for name in arguments.sets}
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(picture(results))


if __name__ == "__main__":
    main()
