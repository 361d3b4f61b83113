#!/usr/bin/env python3
"""Runs commands in alternation and prints what each took: user seconds of its process, wall-clock seconds and peak resident
memory, as median and quartiles over the rounds. User time says what a command costs where others share the machine.

    cpu_time.py --rounds 7 --bytes 50331648 ours='quern compress -q -f ...' theirs='sz3 -f -i ...'

Commands are started without a shell. The last column is the median over the rounds of first / this one, in user seconds,
each quotient taken within one round.
"""
import argparse
import os
import shlex
import statistics
import sys
import time


def run(command):
    """User seconds, wall-clock seconds and peak resident bytes of one run."""
    words = shlex.split(command)
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        try:
            os.execvp(words[0], words)
        finally:
            os._exit(127)
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"cpu_time.py: failed: {command}")
    return usage.ru_utime, time.monotonic() - began, usage.ru_maxrss * 1024


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0], values[0]
    return tuple(statistics.quantiles(values, n=4, method="inclusive"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="measured rounds, after one that is thrown away [7]")
    parser.add_argument("--bytes", type=int, help="bytes handled by each command, for memory as a multiple of them")
    parser.add_argument("commands", nargs="+", metavar="NAME=COMMAND")
    args = parser.parse_args()
    commands = [c.split("=", 1) for c in args.commands]
    taken = [[] for _ in commands]
    for round_number in range(args.rounds + 1):
        for i, (_, command) in enumerate(commands):
            result = run(command)
            if round_number > 0:
                taken[i].append(result)
    print(f"{'command':14s} {'user s':>22s} {'wall s':>22s} {'memory':>8s} {'first/this':>10s}")
    for i, (name, _) in enumerate(commands):
        user, wall, memory = zip(*taken[i])
        spans = []
        for values in (user, wall):
            low, middle, high = quartiles(values)
            spans.append(f"{middle:.3f} [{low:.3f}, {high:.3f}]")
        size = max(memory)
        shown = f"{size / args.bytes:.2f}x" if args.bytes else f"{size >> 20} MiB"
        quotient = statistics.median(a[0] / b[0] for a, b in zip(taken[0], taken[i]))
        print(f"{name:14s} {spans[0]:>22s} {spans[1]:>22s} {shown:>8s} {quotient:10.2f}")


if __name__ == "__main__":
    main()
