"""Adam and AdamW for PyTorch whose weights in binary32 and moments lie in memory or files, as codes of 8 or 4 bits.

    optimizer = pyquern.offload.AdamW(model.parameters(), lr=3e-4, folders=["/nvme0/run", "/nvme1/run"],
                                      memory_limit=8 << 30)
    loss.backward(); optimizer.step(); optimizer.zero_grad()

Takes the place of torch.optim.Adam and AdamW: parameter groups, schedulers, zero_grad(), state_dict() and
load_state_dict() work as there, and either reads what the other's state_dict() gives. Parameters are contiguous tensors in
host memory, of bfloat16 or float32. Of bfloat16 ones the optimizer keeps the weights in binary32.

Without folders everything stays in memory. A state that the folders hold already goes on: the parameters get its weights.
docs/offload.md has the bounds of the codes, and what happens when a step fails."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ._offload.library import BF16, F32, Desc, Info, Region, State, StepDesc

try:
    import torch
except ImportError:
    raise ImportError("PyTorch is not installed: pip install torch") from None

from ._offload import checkpoints as _checkpoints  # noqa: E402: needs PyTorch

__all__ = ["Adam", "AdamW"]

_DTYPES = {torch.bfloat16: BF16, torch.float32: F32}
_FILE_FORMS = ("measured", "plain", "packed")  # by number, as in <quern/offload.h>


def _check(tensor: torch.Tensor, what: str) -> None:
    if tensor.dtype not in _DTYPES:
        raise TypeError(f"{what} is of {tensor.dtype}; bfloat16 and float32 are supported")
    if tensor.device.type != "cpu" or tensor.is_sparse or not tensor.is_contiguous():
        raise ValueError(f"{what} must be a contiguous, dense tensor in host memory")


class Adam(torch.optim.Optimizer):  # type: ignore[misc]  # mypy does not check PyTorch
    """Adam; weight_decay is added to the gradient.

    folders: where the state lies, always the same in one order; none: in memory. memory_limit: bytes of the state in memory,
    at least two subgroups; 0: no limit. subgroup: values that are read, updated and written at once, a multiple of 16384.
    bits: of a code of a moment, 8 or 4. seed: of the rounding. threads: that update; 0: one a hardware thread. durable: a
    step survives a power cut, not only the death of the process. turn_file: processes that name the same file use the disk
    in turns. max_grad_norm: of all gradients together; 0: no clipping. files: "measured" (entropy coded in folders that are
    so slow that coding pays), "plain" (as in memory) or "packed" (entropy coded); numbers do not depend on it."""

    _coupled = True

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.0, *, folders: Sequence[str | os.PathLike[str]] = (),
                 memory_limit: int = 0, subgroup: int = 1 << 24, bits: int = 8, seed: int = 0, threads: int = 1,
                 durable: bool = False, turn_file: str | os.PathLike[str] | None = None, max_grad_norm: float = 0.0,
                 files: str = "measured") -> None:
        self._offload: State | None = None
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self._parameters = [p for group in self.param_groups for p in group["params"]]
        for index, parameter in enumerate(self._parameters):
            _check(parameter, f"parameter {index}")
        self.max_grad_norm = max_grad_norm
        #: What gradients are to be divided by. A step with a gradient that is not finite is skipped: see `last_skipped`.
        self.loss_scale = 1.0
        self.last_skipped = False
        self.last_norm = 0.0
        # What the state was made for: a parameter may get other data later.
        self._shapes = [parameter.shape for parameter in self._parameters]
        if isinstance(folders, (str, bytes, os.PathLike)):
            raise TypeError(f"folders is a sequence of paths: folders=[{folders!r}]")
        if files not in _FILE_FORMS:
            raise ValueError(f"files is one of {', '.join(_FILE_FORMS)}, not {files!r}")
        sizes = (ctypes.c_uint64 * len(self._shapes))(*(shape.numel() for shape in self._shapes))
        names = (ctypes.c_char_p * len(folders))(*(os.fsencode(folder) for folder in folders))
        self._offload = State(Desc(
            threads=threads, region_values=sizes, region_count=len(sizes), subgroup_values=subgroup, bits=bits,
            seed=seed, folders=names, folder_count=len(names), turn_file=os.fsencode(turn_file) if turn_file else None,
            memory_limit=memory_limit, durable=int(durable), file_form=_FILE_FORMS.index(files)))
        if self.info().loaded:
            self._give_weights()
        else:
            self._load(0, {})

    def info(self) -> Info:
        """loaded, step_count, state_bytes, memory_bytes, bytes_read, bytes_written, cached_reads."""
        return self._opened().inspect()

    def close(self) -> None:
        """Lets go of the folders; what they hold stays."""
        if self._offload is not None:
            self._offload.close()

    def __del__(self) -> None:
        if getattr(self, "_offload", None) is not None:
            self.close()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if self._offload is not None:
            raise ValueError("an offloaded optimizer gets all its parameters when it is made")
        super().add_param_group(param_group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        regions = (Region * len(self._parameters))()
        index = 0
        for group in self.param_groups:
            beta1, beta2 = (float(beta) for beta in group["betas"])
            for parameter in group["params"]:
                gradient = parameter.grad
                if gradient is None:
                    raise ValueError(f"parameter {index} has no gradient: give only parameters that are trained")
                _check(gradient, f"the gradient of parameter {index}")
                self._check_parameter(index, parameter)
                if gradient.shape != parameter.shape:
                    raise ValueError(f"the gradient of parameter {index} has another shape than the parameter")
                wide = parameter.dtype == torch.float32
                regions[index] = Region(
                    gradient_dtype=_DTYPES[gradient.dtype], gradient=gradient.data_ptr() or None,
                    copy=None if wide else parameter.data_ptr(), weights=parameter.data_ptr() if wide else None,
                    rate=float(group["lr"]), beta1=beta1, beta2=beta2, epsilon=float(group["eps"]),
                    decay=float(group["weight_decay"]), coupled_decay=int(self._coupled))
                index += 1
        try:
            outcome = self._opened().step(regions, StepDesc(loss_scale=self.loss_scale, max_norm=self.max_grad_norm))
        except Exception:
            self._give_weights_if_possible()
            raise
        self.last_skipped, self.last_norm = bool(outcome.skipped), float(outcome.norm)
        return loss

    def state_dict(self) -> dict[str, Any]:
        """As of torch.optim.Adam, with the moments that the codes stand for; of bfloat16 parameters also "master", the
        weights in binary32."""
        packed: dict[str, Any] = super().state_dict()
        steps = self.info().step_count
        packed["state"] = {}
        for index, parameter in enumerate(self._parameters):
            self._check_parameter(index, parameter)
            first, second = (torch.empty(parameter.shape, dtype=torch.float32) for _ in range(2))
            state = {"step": torch.tensor(float(steps)), "exp_avg": first, "exp_avg_sq": second}
            if parameter.dtype != torch.float32:
                state["master"] = torch.empty(parameter.shape, dtype=torch.float32)
            if parameter.numel():
                master = state["master"].data_ptr() if "master" in state else None
                self._opened().read(index, 0, parameter.numel(), master, first.data_ptr(), second.data_ptr())
            packed["state"][index] = state
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """What state_dict() of this class, or of torch.optim.Adam or AdamW, gave. Load the model's parameters before: the
        weights in binary32 are "master" where it is there, else the parameters."""
        groups, state = state_dict["param_groups"], state_dict["state"]
        if [len(group["params"]) for group in groups] != [len(group["params"]) for group in self.param_groups]:
            raise ValueError("the state dict has other parameter groups than the optimizer")
        if any(group.get("amsgrad") or group.get("maximize") for group in groups):
            raise ValueError("amsgrad and maximize are not supported")
        saved: dict[int, dict[str, torch.Tensor]] = {}
        order = [key for group in groups for key in group["params"]]
        for index, key in enumerate(order):
            if key in state:
                saved[index] = state[key]
        steps = {float(values["step"]) for values in saved.values()}
        if len(steps) > 1 or (saved and len(saved) != len(self._parameters)):
            raise ValueError("the parameters of the state dict took different numbers of steps, which is not supported")
        for index, values in saved.items():
            for name in ("exp_avg", "exp_avg_sq", "master"):
                if name not in values and name != "master":
                    raise ValueError(f"the state dict has no {name} of parameter {index}")
                if name in values and values[name].shape != self._parameters[index].shape:
                    raise ValueError(f"{name} of parameter {index} has another shape than the parameter")
        self._load(int(steps.pop()) if steps else 0, saved)
        for group, other in zip(self.param_groups, groups):
            group.update({name: value for name, value in other.items() if name != "params"})
        self._give_weights()

    def at_rest_state(self) -> dict[str, Any]:
        """The state as it lies, with the options of the parameter groups: a dict of bytes and tensors for
        pyquern.checkpoint.save(), an Engine or torch.save(). No moment is decoded. All of it is in memory at once; where that
        is too much, save_checkpoint()."""
        state = self._opened()
        subgroups = [_checkpoints.read_subgroup(state, number) for number in range(state.inspect().subgroups)]
        return {"description": state.describe(), "param_groups": super().state_dict()["param_groups"],
                "subgroups": [{"weights": weights, "moments": moments} for weights, moments in subgroups]}

    def load_at_rest_state(self, saved: dict[str, Any]) -> None:
        """Goes on bit for bit from what at_rest_state() gave, in an optimizer of the same parameters, subgroup and bits."""

        def fill(subgroup: int, begin: int, count: int, address: int) -> None:
            tensors = saved["subgroups"][subgroup]
            weights, moments = (torch.as_tensor(tensors[name]).contiguous().view(torch.uint8) for name in ("weights", "moments"))
            part = weights if begin == 0 else moments[begin - len(weights):]
            if len(part) < count:
                raise ValueError(f"subgroup {subgroup} of the saved state has too few bytes")
            ctypes.memmove(address, part.data_ptr(), count)

        self._restore(saved["description"], fill, saved["param_groups"])

    def save_checkpoint(self, path: str | os.PathLike[str], step: int, state_dict: dict[str, Any] | None = None, *,
                        batch_bytes: int = 1 << 28, replace: bool = False, tags: dict[str, Any] | None = None) -> Any:
        """Saves the state as it lies, and `state_dict` (a model's, say), as the checkpoint `step` of the store at `path`.
        At most `batch_bytes` of it, or one subgroup, are in memory at once. Returns pyquern.checkpoint.Saved."""
        return _checkpoints.save(self._opened(), super().state_dict()["param_groups"], path, step, state_dict or {},
                                 batch_bytes, replace, tags)

    def load_checkpoint(self, path: str | os.PathLike[str], step: int | None = None) -> tuple[int, dict[str, Any]]:
        """Goes on bit for bit from the checkpoint `step`, or from the newest that is whole; the parameters get its
        weights. Returns its step and the `state_dict` that was saved with it."""
        return _checkpoints.load(self._restore, path, step)

    def _restore(self, description: bytes, fill: Callable[..., None], groups: list[dict[str, Any]]) -> None:
        for index, parameter in enumerate(self._parameters):
            self._check_parameter(index, parameter)
        if [len(group["params"]) for group in groups] != [len(group["params"]) for group in self.param_groups]:
            raise ValueError("the saved state has other parameter groups than the optimizer")
        self._opened().restore(description, fill)
        for group, other in zip(self.param_groups, groups):
            group.update({name: value for name, value in other.items() if name != "params"})
        self._give_weights()

    def _opened(self) -> State:
        assert self._offload is not None
        return self._offload

    def _check_parameter(self, index: int, parameter: torch.Tensor) -> None:
        """The state reads and writes as many values as the parameter had at first, at the address of the tensor."""
        _check(parameter, f"parameter {index}")
        if parameter.shape != self._shapes[index]:
            raise ValueError(f"parameter {index} changed its shape from {tuple(self._shapes[index])} to "
                             f"{tuple(parameter.shape)}; make a new optimizer for it")

    def _load(self, steps: int, saved: dict[int, dict[str, torch.Tensor]]) -> None:
        for index, parameter in enumerate(self._parameters):
            self._check_parameter(index, parameter)
        kept: dict[tuple[int, str], torch.Tensor] = {}

        def values_of(region: int, name: str) -> torch.Tensor | None:
            """The whole tensor in binary32, kept while parts of one region are asked for."""
            if (region, name) not in kept:
                for key in [key for key in kept if key[0] != region]:
                    del kept[key]
                given = saved.get(region, {}).get(name)
                if given is None and name == "master":
                    given = self._parameters[region]
                if given is None:
                    return None
                kept[region, name] = given.detach().to(device="cpu", dtype=torch.float32).contiguous()
            return kept[region, name]

        def source(region: int, begin: int, count: int, *places: int) -> None:
            for name, place in zip(("master", "exp_avg", "exp_avg_sq"), places):
                values = values_of(region, name)
                if values is not None:
                    ctypes.memmove(place, values.data_ptr() + 4 * begin, 4 * count)

        self._opened().load(steps, source)

    def _give_weights(self) -> None:
        for index, parameter in enumerate(self._parameters):
            self._check_parameter(index, parameter)
        for index, parameter in enumerate(self._parameters):
            if not parameter.numel():
                continue
            wide = torch.empty(parameter.shape, dtype=torch.float32)
            self._opened().read(index, 0, parameter.numel(), wide.data_ptr(), None, None)
            with torch.no_grad():
                parameter.copy_(wide)

    def _give_weights_if_possible(self) -> None:
        """After a failure: the parameters of the state before the step, where it can be read."""
        try:
            self._give_weights()
        except Exception:
            pass


class AdamW(Adam):
    """AdamW: weight_decay is taken off the weights. Arguments as of Adam."""

    _coupled = False

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 1e-2, **offload: Any) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, **offload)
