#!/usr/bin/env python3
"""How much larger a stream of `stencil` is than under the best layout forced by name, on fields as they are and on changed copies.

    regret.py [--fields fields.json --data DIR] [--flows DIR] [--changes as-is,mirrored,...] [--rel 1e-2,1e-3] [--psnr 45,60]
              [--most-elems N] [--set key=value] [--json OUT.jsonl]

`fields.json` lists fields as the scoreboard does: file, dtype, dims, fill, range, and perhaps a group. Files of --flows end in
_SHAPE.f32. Changed copies guard against a choice that is tuned to some fields: `mirrored` (last axis), `transposed` (axes
reversed), `cropped` (the middle 3/4 of each axis), `scaled` (times 1000/3, plus 7), `noisy` (white noise of a thousandth of the
range), `tiled` (repeated and mirrored to more than 2^24 values; give --most-elems 50000000). Bounds are relative to the range of
valid values. pyquern is imported; QUERN_LIBRARY names its library. One line for each case, then geometric mean and worst of each
group and bound, and what the choice took in seconds of the best forced encode.
"""
import argparse
import json
import math
import os
import re
import time

import numpy as np
import pyquern as quern

LAYOUTS = ('raster', 'levels', 'planes', 'wavelet')


def cropped(x):
    return x[tuple(slice(n // 8, n - n // 8) if n >= 8 else slice(None) for n in x.shape)]


def tiled(x, most=1 << 24):
    """Repeated along its axes in turn, from the last one on, each second time mirrored, until it has more than `most` values."""
    axis = x.ndim - 1
    while x.size <= most:
        x = np.concatenate([x, np.flip(x, axis)], axis)
        axis = (axis - 1) % x.ndim
    return x


def noisy(x, valid):
    spread = float(x[valid].max()) - float(x[valid].min())
    noise = np.random.default_rng(1).normal(size=x.shape) * spread / 1000
    return np.where(valid, x + noise, x).astype(x.dtype)


CHANGES = {
    'as-is': lambda x, valid: x,
    'mirrored': lambda x, valid: x[..., ::-1],
    'transposed': lambda x, valid: x.T,
    'cropped': lambda x, valid: cropped(x),
    'scaled': lambda x, valid: np.where(valid, x * x.dtype.type(1000 / 3) + x.dtype.type(7), x),
    'noisy': noisy,
    'tiled': lambda x, valid: tiled(x),
}


def valid_of(x, fill):
    valid = np.isfinite(x)
    for value in fill:
        valid &= x != x.dtype.type(value)
    return valid


def fields_of(given):
    """(name, group, array, fill values) of each."""
    if given.fields:
        for field in json.load(open(given.fields)):
            path = os.path.join(given.data, field['file'])
            x = np.fromfile(path, dtype={'f32': '<f4', 'f64': '<f8'}[field['dtype']]).reshape(field['dims'])
            yield field['file'], field.get('group', field['file'].split('_')[0]), x, field['fill']
    if given.flows:
        for name in sorted(os.listdir(given.flows)):
            found = re.fullmatch(r'(.*?)_.*?(\d+(?:x\d+)*)\.f32', name)
            if found:
                x = np.fromfile(os.path.join(given.flows, name), dtype='<f4')
                yield name, found.group(1), x.reshape([int(n) for n in found.group(2).split('x')]), []


def encoded(x, fill, bound, settings):
    start = time.process_time()
    stream = quern.compress(x, codec='stencil', threads=1, settings=settings, **({'fill': fill} if fill else {}), **bound)
    return len(stream), time.process_time() - start


def regret(x, fill, bound, settings):
    own, seconds = encoded(x, fill, bound, settings)
    forced = {layout: encoded(x, fill, bound, {**settings, 'layout': layout}) for layout in LAYOUTS
              if x.ndim > 1 or layout != 'planes'}
    best = min(forced, key=lambda layout: forced[layout][0])
    return {'bytes': own, 'best': best, 'best_bytes': forced[best][0], 'seconds': seconds, 'best_seconds': forced[best][1],
            'regret': own / forced[best][0], 'forced': {layout: size for layout, (size, _) in forced.items()}}


def geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--fields')
    parser.add_argument('--data')
    parser.add_argument('--flows')
    parser.add_argument('--changes', default='as-is')
    parser.add_argument('--rel', default='1e-2,1e-3,1e-4,1e-5')
    parser.add_argument('--psnr', default='')
    parser.add_argument('--most-elems', type=int, default=1 << 22)
    parser.add_argument('--set', action='append', default=[], metavar='KEY=VALUE')
    parser.add_argument('--json')
    given = parser.parse_args()
    settings = dict(word.split('=', 1) for word in given.set)
    log = open(given.json, 'w') if given.json else None
    rows = []
    for name, group, array, fill in fields_of(given):
        for change in given.changes.split(','):
            x = np.ascontiguousarray(CHANGES[change](array, valid_of(array, fill)))
            valid = valid_of(x, fill)
            if x.size > given.most_elems or not valid.any():
                continue
            spread = float(x[valid].max()) - float(x[valid].min())
            bounds = [('rel ' + rel, {'abs': float(rel) * spread}) for rel in given.rel.split(',') if rel]
            bounds += [('psnr ' + psnr, {'psnr': float(psnr)}) for psnr in given.psnr.split(',') if psnr]
            for label, bound in bounds:
                row = {'field': name, 'group': group, 'change': change, 'bound': label, **regret(x, fill, bound, settings)}
                rows.append(row)
                if log:
                    log.write(json.dumps(row) + '\n')
                    log.flush()
                print(f"{name:44s} {change:10s} {label:9s} {row['bytes']:9d} {row['best']:8s} {row['best_bytes']:9d} "
                      f"{row['regret']:.4f} {row['seconds'] / max(row['best_seconds'], 1e-9):6.2f}", flush=True)
    for key in ('bound', 'change', 'group'):
        for value in dict.fromkeys(row[key] for row in rows):
            chosen = [row for row in rows if row[key] == value]
            worst = max(chosen, key=lambda row: row['regret'])
            print(f"{key} {value}: mean {geometric([row['regret'] for row in chosen]):.4f}, worst {worst['regret']:.4f} "
                  f"({worst['field']} {worst['change']} {worst['bound']}), {len(chosen)} cases, "
                  f"{sum(row['seconds'] for row in chosen) / max(sum(row['best_seconds'] for row in chosen), 1e-9):.2f} "
                  'of the seconds of the best forced')


if __name__ == '__main__':
    main()
