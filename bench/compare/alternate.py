#!/usr/bin/env python3
"""Times commands in alternation, so that a noisy machine hits all of them alike, and prints their figures as ratios.

    alternate.py --rounds 15 ours='quern compress -q ...' theirs='./compress ...'
    alternate.py --seconds 'ours=compress_seconds": ([0-9.e-]+)' ours='quern bench --json ...' theirs='...'

A command's figure is its wall-clock time, or with --seconds NAME=REGEX the median of the numbers that its output holds
there (programs that time themselves). Every quotient is the median over the rounds of first / other, each taken within one round."""
import argparse
import re
import statistics
import subprocess
import sys
import time


def named(text):
    name, separator, value = text.partition("=")
    if not separator or not name or not value:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    return name, value


def run_once(name, command, pattern):
    """Seconds of one run; the command goes through the shell, its output is kept only for the pattern."""
    begin = time.perf_counter()
    run = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    seconds = time.perf_counter() - begin
    if run.returncode != 0:
        sys.exit(f"alternate.py: {name} ended with {run.returncode}:\n{run.stdout[-2000:]}")
    if pattern is None:
        return seconds
    found = re.findall(pattern, run.stdout)
    if not found:
        sys.exit(f"alternate.py: nothing in the output of {name} matches {pattern}:\n{run.stdout[-2000:]}")
    return statistics.median(float(number) for number in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="+", type=named, metavar="NAME=COMMAND")
    parser.add_argument("--rounds", type=int, default=11, help="measured rounds, after one that is thrown away [11]")
    parser.add_argument("--seconds", action="append", type=named, default=[], metavar="NAME=REGEX",
                        help="take seconds from the command's output; the first group is the number")
    parser.add_argument("--bytes", type=int, help="bytes handled by each command, for MB/s")
    args = parser.parse_args()
    commands, patterns = dict(args.commands), dict(args.seconds)
    if unknown := set(patterns) - set(commands):
        parser.error(f"--seconds names no command: {', '.join(sorted(unknown))}")
    if args.rounds < 1:
        parser.error("--rounds must be at least 1")
    times = {name: [] for name in commands}
    for round_number in range(args.rounds + 1):
        for name, command in commands.items():
            seconds = run_once(name, command, patterns.get(name))
            if round_number > 0:
                times[name].append(seconds)
    first = next(iter(commands))
    print(f"{'':16} {'median ms':>10} {'min':>8} {'quartiles':>17} {'MB/s':>8} {first + ' is faster by':>24}")
    for name, values in times.items():
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
        speed = f"{args.bytes / 1e6 / middle:8.0f}" if args.bytes else f"{'-':>8}"
        quotient = statistics.median(other / ours for ours, other in zip(times[first], values))
        print(f"{name:16} {middle * 1e3:10.2f} {min(values) * 1e3:8.2f} {low * 1e3:8.2f}-{high * 1e3:8.2f} {speed} "
              f"{quotient:23.2f}x")


if __name__ == "__main__":
    main()
