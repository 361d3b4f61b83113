"""What a Manager is told: refused here, in the first second, with a sentence that says what to give."""
import inspect
import math
import numbers


def _is_count(value, least):
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and value >= least


def check_arguments(every, minutes, keep, keep_every, keep_best, metric, mode, on_signal, on_error, options):
    from .. import checkpoint

    def refuse(wrong, sentence):
        if wrong:
            raise ValueError(sentence)

    refuse(every is None and minutes is None, "when shall be saved? give every=500 (steps), minutes=10, or both")
    refuse(every is not None and not _is_count(every, 1), f"every={every!r}: give a whole number of steps from 1")
    refuse(minutes is not None and not (isinstance(minutes, numbers.Real) and 0 < minutes < math.inf),
           f"minutes={minutes!r}: give a number above 0")
    refuse(keep is not None and not _is_count(keep, 1),
           f"keep={keep!r} would remove what has just been saved; give keep=1 or more, or keep=None to keep all")
    refuse(keep_every is not None and not _is_count(keep_every, 1), f"keep_every={keep_every!r}: give a whole number of steps from 1")
    refuse(keep_every is not None and every is not None and keep_every % every != 0,
           f"keep_every={keep_every} is no multiple of every={every}, so most steps that it names are never saved; give a multiple "
           f"of {every}")
    refuse(not _is_count(keep_best, 0), f"keep_best={keep_best!r}: give a whole number, how many of the best stay")
    refuse(keep_best > 0 and metric is None, f"keep_best={keep_best}: best by what? give metric='loss', a name in the metrics of step()")
    refuse(mode not in ("min", "max"), f"mode={mode!r}: give 'min' when smaller is better, 'max' when larger is")
    refuse(on_signal not in ("flag", "exit"), f"on_signal={on_signal!r}: give 'flag' or 'exit'")
    refuse(on_error not in ("raise", "warn"), f"on_error={on_error!r}: give 'raise' or 'warn'")
    known = set(inspect.signature(checkpoint.save).parameters) - {"path", "state_dict", "step", "replace"}
    unknown = sorted(set(options) - known)
    if unknown:
        raise TypeError(f"{unknown[0]} is no option of Manager, nor of pyquern.checkpoint.save(), which has {', '.join(sorted(known))}")


def numbers_of(metrics, step):
    """{name: float} of the metrics of a step."""
    out = {}
    for name, value in metrics.items():
        try:
            out[str(name)] = float(value.detach() if hasattr(value, "detach") else value)
        except (TypeError, ValueError):
            raise TypeError(f"step {step}: the metric '{name}' is a {type(value).__name__}; metrics are numbers") from None
    return out
