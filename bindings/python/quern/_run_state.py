"""States of running objects (modules, optimizers, generators) as values to save, and the way back into them."""
import random
import sys

import numpy


def collected(state):
    """The state to save: what a function returns, with the state_dict() of all values that have one."""
    if callable(state) and not hasattr(state, "state_dict"):
        state = state()
    return _collected(state)


def _collected(value):
    if callable(getattr(value, "state_dict", None)):
        return value.state_dict()
    if type(value) is dict:
        return {key: _collected(item) for key, item in value.items()}
    return value


def put_back(state, into):
    """Hands the parts of a loaded state to the targets in `into`. Names and shapes are checked before anything changes."""
    if callable(getattr(into, "load_state_dict", None)):
        into.load_state_dict(state)
        return
    if not isinstance(into, dict):
        raise TypeError(f"into is a dict like the saved state, or an object with load_state_dict(), not a {type(into).__name__}")
    actions = []
    _plan(state, into, "", actions)
    for action in actions:
        action()


def _plan(state, into, where, actions):
    if not isinstance(state, dict):
        raise KeyError(f"into has names below '{where}', where the checkpoint has a {type(state).__name__}")
    missing = [str(key) for key in into if key not in state]
    if missing:
        raise KeyError(f"the checkpoint has no {', '.join(repr(where + key) for key in missing)}; it has "
                       f"{', '.join(repr(where + str(key)) for key in state) or 'nothing'}")
    for key, target in into.items():
        value = state[key]
        if callable(getattr(target, "load_state_dict", None)):
            actions.append(lambda target=target, value=value: target.load_state_dict(value))
        elif type(target) is dict:
            _plan(value, target, f"{where}{key}/", actions)
        elif hasattr(target, "shape") and hasattr(target, "dtype") and not isinstance(target, numpy.generic):
            _check_fit(target, value, f"{where}{key}")
            actions.append(lambda target=target, value=value: _fill(target, value))
        elif callable(target):
            actions.append(lambda target=target, value=value: target(value))
        else:
            actions.append(lambda key=key, value=value: into.__setitem__(key, value))


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
            if "cuda" in state and torch.cuda.is_available():
                torch.cuda.set_rng_state_all(state["cuda"])
