#!/usr/bin/env python3
"""Sizes of stored checkpoints: `quern checkpoint` beside torch.save, safetensors, zstd and ZipNN, in one run.

    checkpoints.py --quern PATH [--json OUT.jsonl] FILE.safetensors ...
    checkpoints.py --quern PATH --steps 400=A.safetensors 401=B.safetensors ... [--presets exact,balanced]
        [--gradient 401=G.safetensors --rule adamw.json]

The first form stores each file alone. The second stores the first step alone and every other one beside it, with it as base, once
under each preset; with a gradient it also stores that step for replay, which the gradient's bytes are part of. What quern takes is the growth of the store's folder:
manifest, tables, checksums, all files. What comes back from `exact` and from replay is compared bit for bit; of the other presets it
is counted how many values differ. ZipNN gets each tensor's bytes with its type, one thread, its default method. Needs numpy, torch,
safetensors, zstandard and zipnn; what is missing is left out with a line that says so.
"""
import argparse
import filecmp
import io
import json
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np

warnings.filterwarnings('ignore')
WIDTH = {'F64': 8, 'F32': 4, 'F16': 2, 'BF16': 2, 'I64': 8, 'I32': 4, 'I16': 2, 'I8': 1, 'U8': 1, 'BOOL': 1}
ZIPNN_TYPES = {'F32': 'float32', 'BF16': 'bfloat16', 'F16': 'float16'}


def tensors(path):
    """(name, type, bytes) of every tensor of a safetensors file."""
    with open(path, 'rb') as file:
        head = int.from_bytes(file.read(8), 'little')
        table = json.loads(file.read(head))
        data = file.read()
    return [(name, entry['dtype'], data[entry['data_offsets'][0]:entry['data_offsets'][1]])
            for name, entry in table.items() if name != '__metadata__']


def folder_bytes(folder):
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)


def torch_bytes(path):
    import torch
    from safetensors.torch import load_file
    out = io.BytesIO()
    torch.save(load_file(path), out)
    return out.tell()


def zstd_bytes(path, level):
    import zstandard
    with open(path, 'rb') as file:
        return len(zstandard.ZstdCompressor(level=level).compress(file.read()))


def zipnn_bytes(path):
    import zipnn
    total = 0
    for _, dtype, data in tensors(path):
        if dtype not in ZIPNN_TYPES or not data:
            total += len(data)
            continue
        coder = zipnn.ZipNN(bytearray_dtype=ZIPNN_TYPES[dtype], input_format='byte', threads=1)
        coded = coder.compress(bytearray(data))
        if bytes(coder.decompress(coded)) != data:
            raise RuntimeError('ZipNN changed a tensor')
        total += min(len(coded), len(data))
    return total


def run(words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(' '.join(words) + ': ' + done.stderr.strip()[-400:])
    return done.stdout


def changed_values(path, back):
    """Values whose bits differ, and all of them."""
    there = {name: data for name, _, data in tensors(back)}
    changed = total = 0
    for name, dtype, data in tensors(path):
        width = WIDTH[dtype]
        a, b = (np.frombuffer(x, np.uint8).reshape(-1, width) for x in (data, there[name]))
        changed += int((a != b).any(axis=1).sum())
        total += len(data) // width
    return changed, total


class Store:
    def __init__(self, quern, folder):
        self.quern, self.folder = quern, folder

    def save(self, step, path, *options):
        """Bytes that the step takes; `options` may begin with more files."""
        before = folder_bytes(self.folder) if os.path.isdir(self.folder) else 0
        run([self.quern, 'checkpoint', 'save', path, *options, '--store', self.folder, '--step', str(step), '-q'])
        return folder_bytes(self.folder) - before

    def check(self, step, path, exact):
        """What a load says of the step, in words. Fails when `exact` and a bit differs."""
        back = self.folder + '-back-' + step
        run([self.quern, 'checkpoint', 'load', '--store', self.folder, '--step', step, '-o', back, '-q', '--force'])
        if os.path.isdir(back):
            back = os.path.join(back, os.path.basename(path))
        if filecmp.cmp(path, back, shallow=False):
            return 'the same file'
        changed, total = changed_values(path, back)
        if exact:
            raise RuntimeError('step %s came back with %d of %d values changed' % (step, changed, total))
        return '%d of %d values changed' % (changed, total)


def report(log, **row):
    row['ratio'] = round(row['raw'] / row['bytes'], 3) if row['bytes'] else None
    print('%-44s %-34s %12d %8s  %s' % (row['file'], row['how'], row['bytes'], row['ratio'], row.get('note', '')), flush=True)
    if log:
        log.write(json.dumps(row) + '\n')


def beside(log, path):
    """The others."""
    raw = sum(len(data) for _, _, data in tensors(path))
    name = os.path.basename(path)
    for how, measure in (('safetensors', os.path.getsize), ('torch.save', torch_bytes), ('zstd -3', lambda p: zstd_bytes(p, 3)),
                         ('zstd -19', lambda p: zstd_bytes(p, 19)), ('ZipNN', zipnn_bytes)):
        try:
            report(log, file=name, how=how, raw=raw, bytes=measure(path))
        except ImportError as missing:
            print('%-44s %-34s left out: %s' % (name, how, missing))
    return raw


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quern', required=True)
    parser.add_argument('--json')
    parser.add_argument('--steps', nargs='*', default=[], metavar='STEP=FILE')
    parser.add_argument('--gradient', metavar='STEP=FILE')
    parser.add_argument('--rule', help="file with the optimizer's rule")
    parser.add_argument('--presets', default='exact')
    parser.add_argument('files', nargs='*')
    given = parser.parse_args()
    log = open(given.json, 'w') if given.json else None
    with tempfile.TemporaryDirectory() as scratch:
        for i, path in enumerate(given.files):
            raw = beside(log, path)
            store = Store(given.quern, os.path.join(scratch, 'file%d' % i))
            size = store.save(1, path)
            report(log, file=os.path.basename(path), how='quern exact', raw=raw, bytes=size, note=store.check('1', path, True))
        steps = [step.split('=', 1) for step in given.steps]
        for path in {path for _, path in steps}:
            beside(log, path)
        for preset in given.presets.split(',') if steps else []:
            for step, path in steps:
                store = Store(given.quern, os.path.join(scratch, preset + step))
                raw = sum(len(data) for _, _, data in tensors(path))
                base, base_path = steps[0]
                options = ['--preset', preset]
                how = 'quern ' + preset
                if step != base:
                    store.save(base, base_path, *options)
                    options += ['--base', base]
                    how += ', step %s on %s' % (step, base)
                size = store.save(step, path, *options)
                report(log, file=os.path.basename(path), how=how, raw=raw, bytes=size,
                       note=store.check(step, path, preset == 'exact'))
        if given.gradient:
            step, gradient = given.gradient.split('=', 1)
            store = Store(given.quern, os.path.join(scratch, 'replay'))
            store.save(*steps[0])
            path = dict(steps)[step]
            size = store.save(step, path, gradient, '--base', steps[0][0], '--replay', given.rule)
            report(log, file=os.path.basename(path), how='quern replay, step %s on %s' % (step, steps[0][0]),
                   raw=sum(len(data) for _, _, data in tensors(path)), bytes=size, note=store.check(step, path, True))
    return 0


if __name__ == '__main__':
    sys.exit(main())
