#!/usr/bin/env python3
"""Whether `stencil` takes the layout that makes the smallest stream: each array coded with the layout of quern's choice and with
every layout forced.

    layouts.py --quern PATH [--before PATH] [--goal ratio|speed] [--rel 1e-2,1e-3,1e-4,1e-5] [--json OUT.jsonl] FIELD_50x100x100.f32 ...

Bounds are relative to the range of each array, its missing values declared by nothing but NaN. Printed are the arrays whose stream
is more than 1 % above the best forced one, and the geometric mean of all quotients for each bound; with --before the same of a
second build, and what the first takes in bytes of the second. Times are quern's own, of single runs.
"""
import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile

LAYOUTS = ['raster', 'levels', 'planes', 'wavelet']


def coded(quern, path, dtype, shape, rel, goal, layout, out):
    """Bytes and seconds of one run."""
    words = [quern, 'compress', '--codec', 'stencil', '--json', '-f', '--goal', goal, '--rel', rel, '-t', dtype, '-s', shape, '-o', out, path]
    if layout:
        words += ['--set', 'layout=' + layout]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(' '.join(words) + ': ' + done.stderr.strip()[-300:])
    report = json.loads(done.stdout)
    return report['output_bytes'], report['seconds']


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quern', required=True)
    parser.add_argument('--before')
    parser.add_argument('--goal', default='ratio', choices=['ratio', 'speed'])
    parser.add_argument('--rel', default='1e-2,1e-3,1e-4,1e-5')
    parser.add_argument('--json')
    parser.add_argument('fields', nargs='+', metavar='FIELD', help='raw arrays; shape and type are read from their names')
    given = parser.parse_args()
    log = open(given.json, 'w') if given.json else None
    for rel in given.rel.split(','):
        above, against, seconds = [], [], [0, 0]
        for path in given.fields:
            name = re.fullmatch(r'.*_(\d+(?:x\d+)*)\.(f32|f64)', os.path.basename(path))
            if not name:
                sys.exit(f'layouts.py: {path} does not end in _SHAPE.f32 or _SHAPE.f64')
            shape, dtype = name.groups()
            with tempfile.TemporaryDirectory() as scratch:
                out = os.path.join(scratch, 'x.qn')
                own = coded(given.quern, path, dtype, shape, rel, given.goal, None, out)
                forced = {layout: coded(given.quern, path, dtype, shape, rel, given.goal, layout, out) for layout in LAYOUTS}
                before = coded(given.before, path, dtype, shape, rel, given.goal, None, out) if given.before else None
            best = min(forced, key=lambda layout: forced[layout][0])
            above.append(own[0] / forced[best][0])
            seconds[0] += own[1]
            if before:
                against.append(own[0] / before[0])
                seconds[1] += before[1]
            if above[-1] > 1.01 or (before and not 0.99 < against[-1] < 1.01):
                print(f'{rel:5s} {os.path.basename(path):45s} {own[0]:9d} bytes, {above[-1]:.3f} of {best}' +
                      (f', {against[-1]:.3f} of before' if before else ''), flush=True)
            if log:
                log.write(json.dumps({'file': path, 'rel': rel, 'own': own, 'forced': forced, 'before': before}) + '\n')
        print(f'{rel:5s} mean of {len(above)}: {mean(above):.4f} of the best forced one, worst {max(above):.3f}, {seconds[0]:.3f} s' +
              (f'; {mean(against):.4f} of before, {min(against):.3f} to {max(against):.3f}, which took {seconds[1]:.3f} s' if against else ''),
              flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
