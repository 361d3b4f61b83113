"""quern from Python: training checkpoints over the C interface of libquern-checkpoint, without compiled code."""
from ._library import Error
from ._tensors import TypedArray

__all__ = ["Error", "TypedArray", "checkpoint", "dcp_convert", "torch_dcp"]
__version__ = "0.1.0"


def __getattr__(name):
    # On first use, so that the package can be imported where the library is not there yet.
    if name in ("checkpoint", "dcp_convert", "torch_dcp"):
        import importlib

        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'pyquern' has no attribute '{name}'")


def __dir__():
    return sorted(set(globals()) | set(__all__))
