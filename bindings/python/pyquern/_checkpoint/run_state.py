"""States of running objects (modules, optimizers, generators) as values to save, and the way back into them."""
import functools
import logging
import random
import sys
from collections import OrderedDict

import numpy

_log = logging.getLogger("quern")
_CONTAINERS = (dict, OrderedDict, list, tuple)


def collected(state):
    """The state to save: what a function returns, with the state_dict() of all values that have one, also of those in dicts,
    lists and tuples."""
    if callable(state) and not hasattr(state, "state_dict"):
        state = state()
    return _collected(state, set())


def _collected(value, outer):
    """outer: identities of the containers that the value is in; one that contains itself is for the save to refuse."""
    if callable(getattr(value, "state_dict", None)):
        return value.state_dict()
    if type(value) not in _CONTAINERS or id(value) in outer:
        return value
    outer.add(id(value))
    before = list(value.values()) if isinstance(value, dict) else value
    items = [_collected(item, outer) for item in before]
    outer.discard(id(value))
    if all(now is item for now, item in zip(items, before)):
        return value  # with what a state dict of PyTorch has as attributes
    return type(value)(zip(value, items) if isinstance(value, dict) else items)


def put_back(state, into):
    """Hands the parts of a loaded state to the targets in `into`. Names and shapes are checked before anything changes."""
    if callable(getattr(into, "load_state_dict", None)):
        into.load_state_dict(state)
        return
    if not isinstance(into, dict) and type(into) not in _CONTAINERS:
        raise TypeError(f"into is a dict like the saved state, or an object with load_state_dict(), not a {type(into).__name__}")
    actions = []
    _plan_container(state, into, "", actions, None)
    for action in actions:
        action()


def _has_targets(value):
    """Whether objects with load_state_dict() are in it."""
    if callable(getattr(value, "load_state_dict", None)):
        return True
    if type(value) not in _CONTAINERS:
        return False
    return any(map(_has_targets, value.values() if isinstance(value, dict) else value))


def _plan_container(state, into, where, actions, put):
    if isinstance(into, dict):
        _plan_dict(state, into, where, actions)
    else:
        _plan_sequence(state, into, where, actions, put)


def _plan_dict(state, into, where, actions):
    if not isinstance(state, dict):
        raise KeyError(f"into has names below '{where}', where the checkpoint has a {type(state).__name__}")
    missing = [str(key) for key in into if key not in state]
    if missing:
        raise KeyError(f"the checkpoint has no {', '.join(repr(where + key) for key in missing)}; it has "
                       f"{', '.join(repr(where + str(key)) for key in state) or 'nothing'}")
    for key, target in into.items():
        _plan(state[key], target, f"{where}{key}", actions, functools.partial(into.__setitem__, key))


def _plan_sequence(state, into, where, actions, put):
    """put: takes the tuple with its new values, in place of the one in `into`; None where nobody can."""
    if not isinstance(state, (list, tuple)) or len(state) != len(into):
        saved = f"{len(state)}" if isinstance(state, (list, tuple)) else f"a {type(state).__name__}"
        raise ValueError(f"into '{where.rstrip('/')}' has {len(into)} items, saved was {saved}")
    if isinstance(into, tuple):
        items = list(into)
        fixed = put is None
    else:
        items, fixed = into, False
    for place, (value, target) in enumerate(zip(state, into)):
        _plan(value, target, f"{where}{place}", actions, None if fixed else functools.partial(items.__setitem__, place))
    if isinstance(into, tuple) and not fixed:
        actions.append(lambda: put(tuple(items)))


def _plan(value, target, where, actions, put):
    """put: takes the value where it replaces the target; None where nobody can."""
    if callable(getattr(target, "load_state_dict", None)):
        actions.append(lambda: target.load_state_dict(value))
    elif type(target) is dict or _has_targets(target):
        _plan_container(value, target, f"{where}/", actions, put)
    elif hasattr(target, "shape") and hasattr(target, "dtype") and not isinstance(target, numpy.generic):
        _check_fit(target, value, where)
        actions.append(lambda: _fill(target, value))
    elif callable(target):
        actions.append(lambda: target(value))
    elif put is None:
        raise TypeError(f"into '{where}' is a value in a tuple, which cannot be replaced; give a list")
    else:
        actions.append(lambda: put(value))


def _check_fit(target, value, where):
    saved = (tuple(getattr(value, "shape", ())), str(getattr(value, "dtype", type(value).__name__)))
    wanted = (tuple(target.shape), str(target.dtype))
    if saved != wanted:
        raise ValueError(f"into '{where}' is {wanted[1]} of shape {wanted[0]}, saved was {saved[1]} of shape {saved[0]}")


def _fill(target, value):
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(target, torch.Tensor):
        with torch.no_grad():
            target.copy_(value)
    else:
        target[...] = value


class RandomState:
    """The generators of a process as a part of the state: those of `random`, of NumPy's old interface (numpy.random.seed),
    and, where PyTorch is loaded, its generators of the host and of all CUDA devices. They are process-wide: each rank has its own."""

    def state_dict(self):
        out = {"python": random.getstate(), "numpy": numpy.random.get_state()}
        torch = sys.modules.get("torch")
        if torch is not None:
            out["torch"] = torch.get_rng_state()
            if torch.cuda.is_available() and torch.cuda.is_initialized():
                out["cuda"] = torch.cuda.get_rng_state_all()
        return out

    def load_state_dict(self, state):
        random.setstate(state["python"])
        numpy.random.set_state(state["numpy"])
        torch = sys.modules.get("torch")
        if torch is not None and "torch" in state:
            torch.set_rng_state(state["torch"])
            _set_generators_of_devices(torch.cuda, state.get("cuda", []))


def _set_generators_of_devices(cuda, states):
    there = cuda.device_count() if cuda.is_available() else 0
    if there < len(states):
        _log.warning("the generators of %d CUDA devices were saved, and %d devices are visible: those of the first %d are restored, "
                     "random numbers of the others are lost", len(states), there, there)
    if states and there:
        cuda.set_rng_state_all(states[:there])
