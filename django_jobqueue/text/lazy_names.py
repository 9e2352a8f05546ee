"""Names of a module that are loaded when somebody first asks for them (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(
    namespace: dict[str, Any], modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of the module with this namespace: for each name
    the module that has it, or that it is."""

    def get(name: str) -> Any:
        path = modules.get(name)
        if path is None:
            own = namespace["__name__"]
            raise AttributeError(f"module {own!r} has no attribute {name!r}")
        module = import_module(path)
        is_module = path == f"{namespace['__name__']}.{name}"
        value = namespace[name] = module if is_module else getattr(module, name)
        return value

    def names() -> list[str]:
        return sorted({*namespace, *modules})

    return get, names
