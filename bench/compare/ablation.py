#!/usr/bin/env python3
"""What each part of codec stencil is worth: stream sizes with one part switched off, divided by those with all of them.

    ablation.py --quern PATH --fields FIELDS.json --data DIR [--rel 1e-2,1e-3,1e-4,1e-5] [--only SUBSTRING] [--json OUT.jsonl]

FIELDS.json lists file, dtype, dims, range and fill values of each field. Bounds are absolute: rel x range. Printed are, for each part
and bound, the geometric mean over the fields and the field that needs the part most. Parts that cannot be switched off are
layouts: there a layout is forced. Masks: fill values are not declared and repeated values not looked for; NaN is masked all the same.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

PARTS = {
    'fitted weights': ['--set', 'fit=off'],
    'contexts': ['--set', 'contexts=off'],
    'tight coarse levels': ['--set', 'tightening=0'],
    'masks': ['--no-mask-search'],
    'a choice: raster alone': ['--set', 'layout=raster'],
    'a choice: levels alone': ['--set', 'layout=levels'],
    'a choice: planes alone': ['--set', 'layout=planes'],
    'a choice: wavelet alone': ['--set', 'layout=wavelet'],
}


def stored(quern, field, data, bound, part, options, out):
    words = [quern, 'compress', '--codec', 'stencil', '-q', '-f', '-t', field['dtype'], '-s', 'x'.join(map(str, field['dims'])),
             '--abs', repr(bound), '-o', out, os.path.join(data, field['file'])] + options
    if part != 'masks':
        for value in field['fill']:
            words += ['--fill', repr(value)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(' '.join(words) + ': ' + done.stderr.strip()[-300:])
    return os.path.getsize(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quern', required=True)
    parser.add_argument('--fields', required=True)
    parser.add_argument('--data', required=True)
    parser.add_argument('--rel', default='1e-2,1e-3,1e-4,1e-5')
    parser.add_argument('--only', default='')
    parser.add_argument('--json')
    given = parser.parse_args()
    bounds = given.rel.split(',')
    quotients = {(part, rel): [] for part in PARTS for rel in bounds}
    log = open(given.json, 'w') if given.json else None
    with open(given.fields) as file:
        fields = [field for field in json.load(file) if given.only in field['file']]
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, 'x.qn')
        for field in fields:
            for rel in bounds:
                bound = float(rel) * field['range']
                whole = stored(given.quern, field, given.data, bound, '', [], out)
                row = {'file': field['file'], 'rel': rel, 'bytes': whole}
                for part, options in PARTS.items():
                    row[part] = stored(given.quern, field, given.data, bound, part, options, out) / whole
                    quotients[part, rel].append((row[part], field['file']))
                if log:
                    log.write(json.dumps(row) + '\n')
            print(field['file'], file=sys.stderr, flush=True)
    print('| without | ' + ' | '.join(bounds) + ' | most at ' + bounds[0] + ' | most at ' + bounds[-1] + ' |')
    print('|---|' + '---|' * (len(bounds) + 2))
    for part in PARTS:
        means = [math.exp(sum(math.log(q) for q, _ in quotients[part, rel]) / len(fields)) for rel in bounds]
        most = [max(quotients[part, rel]) for rel in (bounds[0], bounds[-1])]
        print('| %s | %s | %s |' % (part, ' | '.join('%.3f' % m for m in means), ' | '.join('%.2f %s' % m for m in most)))
    return 0


if __name__ == '__main__':
    sys.exit(main())
