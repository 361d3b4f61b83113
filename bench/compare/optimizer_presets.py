#!/usr/bin/env python3
"""What a resume from each preset does to training, for the optimizers of PyTorch and of other packages.

    PYTHONPATH=bindings/python QUERN_LIBRARY=build/release/lib optimizer_presets.py [--only NAME,...] [--seeds N] [--json OUT.jsonl]

A small transformer learns a synthetic language for 40 steps, its state is saved under every preset, loaded, and trained on for 60
steps with the same data. The late loss is the mean of the last 20 losses; what counts is its distance from that of the exact resume,
beside that of resumes whose weights were multiplied by 1 + 1e-7 z (the spread: the largest of N). A preset passes when its distance
is at most 1e-3 nats or three spreads. Printed as Markdown: that distance, the largest distance of one step's loss, positive values
of the optimizers' tensors without negative values that came back as no positive ones, and raw bytes over stored bytes. Processor only; one thread.
"""
import argparse
import io
import json
import os
import sys
import tempfile
import time
import warnings

os.environ.setdefault('TORCHDYNAMO_DISABLE', '1')  # torchao would compile each step of a small model for minutes

import torch  # noqa: E402

import pyquern as quern  # noqa: E402

warnings.filterwarnings('ignore')
PRESETS = ('exact', 'moments', 'balanced', 'archive')
SYMBOLS, WIDTH, LENGTH, BATCH = 96, 64, 32, 16
BEFORE, AFTER, LATE = 40, 60, 20


def language(count, seed=5):
    """Texts of a language in which what follows depends on two symbols, and sometimes on nothing."""
    random = torch.Generator().manual_seed(seed)
    follows = torch.randint(SYMBOLS, (SYMBOLS, SYMBOLS, 2), generator=random)
    text = torch.zeros(count, BATCH, LENGTH + 1, dtype=torch.long)
    text[..., :2] = torch.randint(SYMBOLS, (count, BATCH, 2), generator=random)
    for i in range(2, LENGTH + 1):
        which = torch.randint(2, (count, BATCH), generator=random)
        noise = torch.rand(count, BATCH, generator=random) < 0.1
        likely = follows[text[..., i - 2] // 8, text[..., i - 1], which]
        text[..., i] = torch.where(noise, torch.randint(SYMBOLS, (count, BATCH), generator=random), likely)
    return text


class Model(torch.nn.Module):
    """One block of a transformer; 0.1 million parameters."""

    def __init__(self, sparse):
        super().__init__()
        self.symbols = torch.nn.Embedding(SYMBOLS, WIDTH, sparse=sparse)
        self.places = torch.nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.mix = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.join = torch.nn.Linear(WIDTH, WIDTH)
        self.norm2 = torch.nn.LayerNorm(WIDTH)
        self.widen = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = torch.nn.Linear(4 * WIDTH, WIDTH)
        self.head = torch.nn.Linear(WIDTH, SYMBOLS)

    def forward(self, text):
        x = self.symbols(text) + self.places
        q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2) for part in self.mix(self.norm(x)).chunk(3, -1))
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.join(mixed.transpose(1, 2).flatten(-2))
        x = x + self.narrow(torch.nn.functional.gelu(self.widen(self.norm2(x))))
        return self.head(x)


def split(model, hidden):
    """Parameters for Muon and SparseAdam, and the rest, which AdamW gets."""
    own = [p for name, p in model.named_parameters() if hidden(name, p)]
    ids = {id(p) for p in own}
    return own, [p for p in model.parameters() if id(p) not in ids]


def is_matrix(name, p):
    return p.ndim == 2 and not name.startswith(('symbols', 'places', 'head'))


def with_adam(make, hidden):
    def both(model):
        own, rest = split(model, hidden)
        return [make(own), torch.optim.AdamW(rest, lr=3e-3)]
    return both


def optimizers():
    """{name: function from a model to its optimizers}; packages that are missing are left out with a line that says so."""
    o = torch.optim
    plain = {
        'Adadelta': (o.Adadelta, dict(lr=1.0)), 'Adafactor': (o.Adafactor, dict(lr=0.03)), 'Adagrad': (o.Adagrad, dict(lr=0.02)),
        'Adam': (o.Adam, dict(lr=3e-3)), 'Adam amsgrad': (o.Adam, dict(lr=3e-3, amsgrad=True)), 'AdamW': (o.AdamW, dict(lr=3e-3)),
        'Adamax': (o.Adamax, dict(lr=3e-3)), 'ASGD': (o.ASGD, dict(lr=0.5, t0=20)),
        'LBFGS': (o.LBFGS, dict(lr=0.1, max_iter=3, history_size=5)), 'NAdam': (o.NAdam, dict(lr=3e-3)), 'RAdam': (o.RAdam, dict(lr=3e-3)),
        'RMSprop': (o.RMSprop, dict(lr=1e-3)), 'RMSprop centered': (o.RMSprop, dict(lr=1e-3, centered=True, momentum=0.5)),
        'Rprop': (o.Rprop, dict(lr=1e-4, step_sizes=(1e-6, 1e-3))), 'SGD momentum': (o.SGD, dict(lr=0.3, momentum=0.9))}
    out = {name: (lambda model, make=make, how=how: [make(model.parameters(), **how)]) for name, (make, how) in plain.items()}
    out['Muon'] = with_adam(lambda own: o.Muon(own, lr=0.02), is_matrix)
    out['SparseAdam'] = with_adam(lambda own: o.SparseAdam(own, lr=3e-3), lambda name, p: name.startswith('symbols'))

    def add(package, names):
        try:
            for name, make in names().items():
                out[name] = lambda model, make=make: [make(model.parameters())]
        except ImportError as problem:
            print(f'left out, for {package} is not here: {problem}', file=sys.stderr)

    def transformers():
        from transformers.optimization import Adafactor
        fixed = dict(scale_parameter=False, relative_step=False)
        return {'Adafactor (transformers)': lambda p: Adafactor(p, lr=3e-3, **fixed),
                'Adafactor beta1 (transformers)': lambda p: Adafactor(p, lr=3e-3, beta1=0.9, **fixed)}

    def lion():
        from lion_pytorch import Lion
        return {'Lion (lion-pytorch)': lambda p: Lion(p, lr=3e-4)}

    def torchao():
        from torchao.optim import AdamW4bit, AdamW8bit
        return {'AdamW8bit (torchao)': lambda p: AdamW8bit(p, lr=3e-3), 'AdamW4bit (torchao)': lambda p: AdamW4bit(p, lr=3e-3)}

    def bitsandbytes():
        from bitsandbytes.optim import AdamW8bit, Lion8bit
        return {'AdamW8bit (bitsandbytes)': lambda p: AdamW8bit(p, lr=3e-3), 'Lion8bit (bitsandbytes)': lambda p: Lion8bit(p, lr=3e-4)}

    def pytorch_optimizer():
        from pytorch_optimizer import CAME, SOAP, AdaBelief, Lamb, Shampoo
        return {'SOAP (pytorch-optimizer)': lambda p: SOAP(p, lr=3e-3), 'Shampoo (pytorch-optimizer)': lambda p: Shampoo(p, lr=0.1),
                'CAME (pytorch-optimizer)': lambda p: CAME(p, lr=1e-3), 'AdaBelief (pytorch-optimizer)': lambda p: AdaBelief(p, lr=3e-3),
                'LAMB (pytorch-optimizer)': lambda p: Lamb(p, lr=1e-2)}

    for package in (transformers, lion, torchao, bitsandbytes, pytorch_optimizer):
        add(package.__name__, package)
    return out


def duplicate(state):
    """A copy; tensors of torchao have no clone()."""
    room = io.BytesIO()
    torch.save(state, room)
    room.seek(0)
    return torch.load(room, weights_only=False)


def parts(value):
    """The state with tensors of torchao as their parts, for a store has no codes of other packages."""
    if hasattr(value, '__tensor_flatten__') and type(value) is not torch.Tensor and not isinstance(value, torch.nn.Parameter):
        names, _ = value.__tensor_flatten__()
        return {name: getattr(value, name) for name in names}
    if isinstance(value, dict):
        return {key: parts(item) for key, item in value.items()}
    return [parts(item) for item in value] if isinstance(value, list) else value


def whole(value, pattern):
    """What parts() took apart."""
    if hasattr(pattern, '__tensor_flatten__') and isinstance(value, dict):
        return type(pattern).__tensor_unflatten__(value, pattern.__tensor_flatten__()[1])
    if isinstance(value, dict):
        return {key: whole(item, pattern[key]) for key, item in value.items()}
    return [whole(item, like) for item, like in zip(value, pattern)] if isinstance(value, list) else value


class Run:
    def __init__(self, make, sparse):
        torch.manual_seed(1)
        self.model = Model(sparse)
        self.optimizers = make(self.model)

    def state(self):
        return {'model': self.model.state_dict(), 'optimizers': [o.state_dict() for o in self.optimizers]}

    def load(self, state):
        self.model.load_state_dict(state['model'])
        for optimizer, own in zip(self.optimizers, state['optimizers']):
            optimizer.load_state_dict(own)

    def loss(self, text):
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        return loss

    def train(self, texts):
        losses = []
        for text in texts:
            if isinstance(self.optimizers[0], torch.optim.LBFGS):
                losses.append(float(self.optimizers[0].step(lambda: self.loss(text))))
                continue
            losses.append(float(self.loss(text)))
            for optimizer in self.optimizers:
                optimizer.step()
        return losses


def tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)


def positives_lost(was, back):
    count = 0
    for a, b in zip(tensors(was['optimizers']), tensors(back['optimizers']), strict=True):
        if type(a) is torch.Tensor and a.is_floating_point() and not bool((a < 0).any()):
            count += int(((a > 0) & ~(b > 0)).sum())
    return count


def late(losses):
    return sum(losses[-LATE:]) / LATE


def measure(name, make, seeds, texts):
    sparse = name.startswith('SparseAdam')
    run = Run(make, sparse)
    run.train(texts[:BEFORE])
    state = duplicate(run.state())

    def resumed(from_state, seed=None):
        other = Run(make, sparse)
        other.load(duplicate(from_state))
        if seed is not None:
            random = torch.Generator().manual_seed(seed)
            with torch.no_grad():
                for p in other.model.parameters():
                    p.mul_(1 + 1e-7 * torch.randn(p.shape, generator=random))
        return other.train(texts[BEFORE:])

    exact = resumed(state)
    spread = max(abs(late(resumed(state, seed)) - late(exact)) for seed in range(seeds))
    rows = []
    for preset in PRESETS:
        with tempfile.TemporaryDirectory(dir='/dev/shm' if os.path.isdir('/dev/shm') else None) as folder:
            saved = quern.checkpoint.save(folder, parts(state), step=BEFORE, preset=preset, threads=1)
            back = whole(quern.checkpoint.load(folder, threads=1), state)
        losses = resumed(back)
        distance = late(losses) - late(exact)
        rows.append({'optimizer': name, 'preset': preset, 'late_exact': late(exact), 'late': distance, 'spread': spread,
                     'worst_step': max((x - y for x, y in zip(losses, exact)), key=abs),
                     'lost': positives_lost(state, back), 'ratio': saved.raw_bytes / saved.stored_bytes,
                     'passes': abs(distance) <= max(1e-3, 3 * spread)})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', help='names, with commas between')
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--json')
    args = parser.parse_args()
    torch.set_num_threads(1)
    texts = language(BEFORE + AFTER)
    known = optimizers()
    names = args.only.split(',') if args.only else list(known)
    log = open(args.json, 'w') if args.json else None
    print('| optimizer | preset | late loss | spread | worst step | positive values lost | ratio | |')
    print('|---|---|---|---|---|---|---|---|')
    failed = 0
    for name in names:
        start = time.time()
        try:
            rows = measure(name, known[name], args.seeds, texts)
        except Exception as problem:  # noqa: BLE001: the others are measured all the same
            print(f'| {name} | | {type(problem).__name__}: {str(problem)[:160]} | | | | | |', flush=True)
            continue
        for row in rows:
            failed += not row['passes'] and row['preset'] != 'archive'
            print(f"| {name} | {row['preset']} | {row['late']:+.5f} | {row['spread']:.5f} | {row['worst_step']:+.5f} | {row['lost']} | "
                  f"{row['ratio']:.3f} | {'' if row['passes'] else 'misses'} |", flush=True)
            if log:
                print(json.dumps(row), file=log, flush=True)
        print(f'{name}: exact {rows[0]["late_exact"]:.4f}, {time.time() - start:.0f} s', file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
