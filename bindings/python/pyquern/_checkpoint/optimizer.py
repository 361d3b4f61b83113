"""The state of a torch.optim.Optimizer, read into the tensors that it has."""

_KEYS = ("optimizer", "optim", "optimizer_state_dict", "optimizer_state")


def find_optimizer(tree, members):
    """The dict of the state dict that is an optimizer's."""
    found = {key: node for key, node in (members(tree) or {}).items()
             if members(node) is not None and {"state", "param_groups"} <= set(members(node))}
    if len(found) == 1:
        return next(iter(found.values()))
    for key in _KEYS:
        if key in found:
            return found[key]
    if not found:
        raise ValueError("the checkpoint has no optimizer's state dict at its top level; say where it is by optimizer_key=")
    raise ValueError(f"the checkpoint has several optimizers: say which by optimizer_key=: {', '.join(map(repr, found))}")


class Restoring:
    """Tensors that the optimizer has already are read into by the plan; others, as before its first step, are made."""

    def __init__(self, optimizer, node, plan, members):
        self._optimizer, self._plan = optimizer, plan
        inner = members(node)
        if inner is None or not {"state", "param_groups"} <= set(inner):
            plan.misfits.append("the optimizer: this is no optimizer's state dict")
            return
        self._groups = plan.value(inner["param_groups"])
        own = optimizer.state_dict()
        sizes = [len(group["params"]) for group in self._groups]
        own_sizes = [len(group["params"]) for group in own["param_groups"]]
        if sizes != own_sizes:
            plan.misfits.append(f"the optimizer: it has groups of {own_sizes} parameters, the checkpoint of {sizes}")
            return
        ids = {saved: mine for group, other in zip(self._groups, own["param_groups"])
               for saved, mine in zip(group["params"], other["params"])}
        self._state, self._new = {}, []
        if members(inner["state"]) is None:
            plan.misfits.append("optimizer.state: a dict is expected on both sides")
            return
        for number, item in members(inner["state"]).items():
            state = self._state[number] = {}
            there = own["state"].get(ids.get(number), {})
            stored = members(item)
            if stored is None:
                plan.misfits.append(f"optimizer.{number}: a dict is expected, the checkpoint has a '{next(iter(item))}'")
                continue
            for name, one in stored.items():
                tensor = there.get(name)
                if "tensor" in one and hasattr(tensor, "data_ptr") and plan.fits(one, tensor) is None:
                    plan.tensor(one, tensor, f"optimizer.{number}.{name}")
                    state[name] = tensor
                else:
                    self._new.append((state, name, one))

    def finish(self):
        for state, name, node in self._new:
            state[name] = self._plan.value(node)
        # The tensors fit, so that the optimizer takes them as they are.
        self._optimizer.load_state_dict({"state": self._state, "param_groups": self._groups})
