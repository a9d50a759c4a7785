"""A GPU that is not there: a device of its own to torch, which computes on the CPU by CUDA's rules.

torch lets Python bring a device (`privateuseone`, here called `gpu`). Its tensors hold a tensor of
the CPU inside. Every operation goes through `PretendedGpu`, which computes with what is inside and
refuses what CUDA refuses: operands on two devices, NumPy, operations without a repeatable kernel.
It counts what a GPU would have to launch and to wait for. A process that has called `bring_gpu`
has this device until it ends, and torch then starts threads that a fork does not survive: so only
processes of their own call it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _foreach_utils, backend_registration
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

NAME = "gpu"

_REFUSED = {"cumsum", "cumprod", "put_", "kthvalue", "median", "histc"}
"""Operations that CUDA refuses for floats where results must be repeatable
(`torch.use_deterministic_algorithms`)."""

_COPIES = {"_to_copy", "copy_", "_pin_memory", "is_pinned"}
"""Operations that may have operands on two devices."""

_WAITS = {"_local_scalar_dense", "nonzero", "_unique2", "unique_dim", "masked_select", "equal"}
"""Operations that wait for everything launched before: the CPU needs their result, or its size."""

_LAUNCHES_NOTHING = {
    *("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"),
    *("_local_scalar_dense", "is_pinned", "_reshape_alias", "_unsafe_view", "lift_fresh"),
}

_LOWER = ("linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "addbmm")
_SINGLE = ("layer_norm", "softmax.int", "log_softmax.int", "logsumexp", "norm.Scalar", "exp", "log")
_WIDEST = ("cat", "stack", "scatter_add", "addcmul")
"""What `torch.autocast` computes in the low precision, in fp32, and in the widest of its inputs: of
CUDA's lists, those that the project may call."""


class GpuTensor(Tensor):
    """A tensor on the pretended GPU; its numbers are in `held`, on the CPU."""

    held: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "GpuTensor":
        made: GpuTensor = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=torch.device(NAME, 0),
        )
        made.held = inner
        return made

    def __init__(self, inner: Tensor) -> None:
        """Do nothing: `__new__` has the tensor already."""

    def tolist(self) -> Any:
        """Return the numbers, which go to the CPU for that."""
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise RuntimeError(f"{func} on the pretended GPU, outside of `PretendedGpu`")


class PretendedGpu(TorchDispatchMode):
    """Everything that happens on the device while this context lasts, counted."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.called = 0
        """Operations on the device, those included that launch nothing, such as views."""
        self.launched: Counter[str] = Counter()
        self.waited: Counter[str] = Counter()
        self.copied: list[tuple[bool, bool]] = []
        """Copies to the device: whether from pinned memory, and whether without waiting."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func.namespace == "aten" and torch._C._dispatch_has_kernel_for_dispatch_key(
            func.name(), "CompositeImplicitAutograd"
        ):  # in inference mode, what is made of others comes whole
            with self:
                return func.decompose(*args, **kwargs)
        name = func.overloadpacket.__name__
        operands = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        on_gpu = any(isinstance(tensor, GpuTensor) for tensor in operands)
        asked = kwargs.get("device")
        target = on_gpu if asked is None else torch.device(asked).type == NAME
        if name not in _COPIES:
            _check_devices(func, operands)
        if target and name in _REFUSED and any(t.is_floating_point() for t in operands):
            raise RuntimeError(f"{name} has no repeatable kernel on CUDA")
        if name == "is_pinned":
            return bool(getattr(operands[0], "pinned", False))
        if name == "_pin_memory":
            pinned = args[0].clone()
            pinned.pinned = True
            return pinned
        self._count(func, name, args, kwargs, operands, target=target)
        if asked is not None:
            kwargs["device"] = torch.device("cpu")
        inside = tree_map(_inner, (args, kwargs))
        result = func(*inside[0], **inside[1])
        if name == "_to_copy" and not target:
            return result.clone() if result is inside[0][0] else result
        if not target:
            return result
        with torch.inference_mode(False):  # a view of a parameter shares its version
            wrapped = tree_map(_outer, result)
        return return_and_correct_aliasing(func, args, kwargs, wrapped)

    def _count(
        self,
        func: Any,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        operands: Sequence[Tensor],
        *,
        target: bool,
    ) -> None:
        gpu = [tensor for tensor in operands if isinstance(tensor, GpuTensor)]
        if not target and not gpu:
            return
        self.called += 1
        if name in _WAITS:
            self.waited[name] += 1
        if (name == "_to_copy" and target and not gpu) or (
            name == "copy_" and isinstance(args[0], GpuTensor) and len(gpu) == 1
        ):
            source = args[0] if name == "_to_copy" else args[1]
            free = bool(kwargs.get("non_blocking", args[2] if len(args) > 2 else False))
            self.copied.append((bool(getattr(source, "pinned", False)), free))
        if (name == "_to_copy" and gpu and not target) or (
            name == "copy_" and gpu and not isinstance(args[0], GpuTensor)
        ):
            self.waited["copy to the CPU"] += 1
        views = any(
            r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns
        )
        if not views and name not in _LAUNCHES_NOTHING:
            self.launched[name] += 1


def _inner(leaf: Any) -> Any:
    return leaf.held if isinstance(leaf, GpuTensor) else leaf


def _outer(leaf: Any) -> Any:
    return GpuTensor(leaf) if isinstance(leaf, Tensor) else leaf


def _check_devices(func: Any, operands: Sequence[Tensor]) -> None:
    """Refuse operands on two devices; numbers of the CPU are for elementwise operations only."""
    if not any(isinstance(tensor, GpuTensor) for tensor in operands):
        return
    for tensor in operands:
        number = tensor.ndim == 0 and torch.Tag.pointwise in func.tags
        if not isinstance(tensor, GpuTensor) and not number:
            raise RuntimeError(
                f"{func}: expected all tensors to be on the same device, but found at least two, "
                f"{NAME}:0 and {tensor.device}, of shape {tuple(tensor.shape)}"
            )


class _Module(backend_registration._DummyBackendModule):
    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


_libraries: list[torch.library.Library] = []


def bring_gpu() -> None:
    """Give this process the device."""
    backend_registration._setup_privateuseone_for_python_backend(NAME, _Module())
    # Parameters keep their identity when a model goes to the device, as they do with CUDA.
    torch.__future__.set_swap_module_params_on_conversion(True)
    # `torch.tensor(…, device=…)` is a copy from the CPU, which the mode sees.
    torch._C._set_only_lift_cpu_tensors(True)
    # Nodes of the graph run in the thread that asks: the mode is this thread's own.
    torch.autograd.set_multithreading_enabled(False)
    _foreach_utils._foreach_supported_types.append(GpuTensor)  # type: ignore[arg-type]
    library = torch.library.Library("aten", "IMPL")
    for names, target in ((_LOWER, _low), (_SINGLE, _single), (_WIDEST, _widest)):
        for name in names:
            packet, _, overload = name.partition(".")
            op = getattr(getattr(torch.ops.aten, packet), overload or "default")
            library.impl(name, _cast(op, target), "AutocastPrivateUse1")
    others = torch.library.Library("_", "IMPL")
    others.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    _libraries.extend([library, others])


def _low(_: Sequence[Tensor]) -> torch.dtype:
    return torch.get_autocast_dtype(NAME)


def _single(_: Sequence[Tensor]) -> torch.dtype:
    return torch.float32


def _widest(tensors: Sequence[Tensor]) -> torch.dtype:
    return torch.float32 if any(t.dtype == torch.float32 for t in tensors) else tensors[0].dtype


def _cast(op: Any, target: Callable[[Sequence[Tensor]], torch.dtype]) -> Callable[..., Any]:
    key = torch._C._parse_dispatch_key("AutocastPrivateUse1")
    assert key is not None
    own = torch._C.DispatchKeySet(key)

    def computed(*args: Any, **kwargs: Any) -> Any:
        tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        floats = [t for t in tensors if t.is_floating_point()]
        with torch._C._ExcludeDispatchKeyGuard(own):
            if not floats or any(t.dtype == torch.float64 for t in floats):
                return op(*args, **kwargs)
            dtype = target(floats)
            args, kwargs = tree_map(
                lambda t: t.to(dtype) if isinstance(t, Tensor) and t.is_floating_point() else t,
                (args, kwargs),
            )
            return op(*args, **kwargs)

    return computed
