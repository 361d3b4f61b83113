"""Classes that a state text names. Only classes that are imported already, or that the caller allows, are used: a file never
makes Python import a module. What a class is used for is checked by who asks."""
import enum
import sys


def reference(cls):
    """ "module:Name" of a class."""
    return f"{cls.__module__}:{cls.__qualname__}"


def _imported(name):
    module_name, _, qualname = name.partition(":")
    found = sys.modules.get(module_name)
    for part in qualname.split("."):
        # Never getattr: modules and metaclasses may answer it with code.
        found = vars(found).get(part) if isinstance(found, type) or type(found).__name__ == "module" else None
    return found if isinstance(found, type) else None


def is_importable(cls):
    return _imported(reference(cls)) is cls


def is_named_tuple(cls):
    fields = getattr(cls, "_fields", None)
    return issubclass(cls, tuple) and isinstance(fields, tuple) and all(isinstance(name, str) for name in fields)


class Classes:
    """What a load may use: `allowed`, classes of the caller's, beside those that are imported."""

    def __init__(self, allowed=()):
        self._allowed = {}
        for cls in allowed:
            if not isinstance(cls, type):
                raise TypeError(f"classes= takes classes, not {cls!r}")
            self._allowed[reference(cls)] = cls

    def find(self, name, test, what):
        """The class of that name. `test(cls)`: is it `what`?"""
        cls = self._allowed.get(name) or _imported(name)
        if cls is None:
            module = name.partition(":")[0]
            raise ValueError(f"the state dict holds {what} of the class {name}, which is not imported: import {module} before "
                             f"loading, or load(..., classes=[the class]); single tensors come without it by load(names=...)")
        if not test(cls):
            raise ValueError(f"the state dict names the class {name} as {what}, and it is none: it is not used")
        return cls


def is_enum(cls):
    return issubclass(cls, enum.Enum)


class Registry:
    """How objects of classes without a form of their own are saved: {class: (name, to, from)}."""

    def __init__(self):
        self._classes, self._names = {}, {}

    def add(self, cls, to, from_, name=None):
        if not isinstance(cls, type) or not callable(to) or not callable(from_):
            raise TypeError("register(cls, to, from_): a class, and two functions")
        name = name or reference(cls)
        self._classes[cls] = (name, to)
        self._names[name] = from_

    def add_all(self, objects):
        for cls, pair in dict(objects or {}).items():
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise TypeError("objects= is {class: (to, from_)}: two functions for each class")
            self.add(cls, *pair)
        return self

    def writer(self, cls):
        return self._classes.get(cls)

    def reader(self, name):
        return self._names.get(name)


#: What pyquern.checkpoint.register() was given.
REGISTERED = Registry()
