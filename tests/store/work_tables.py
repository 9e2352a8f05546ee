"""The statements of a module of the store."""

from __future__ import annotations

from types import ModuleType

from django_jobqueue.store.work_rows import WorkTable


def texts_of(module: ModuleType) -> dict[str, str]:
    """Its constant texts by name, those of its tables of chunked work included."""
    texts = {}
    for name, value in vars(module).items():
        if isinstance(value, WorkTable):
            for part, text in vars(value).items():
                texts[f"{name}.{part}"] = text
        else:
            texts[name] = value
    return {name: text for name, text in texts.items() if isinstance(text, str)}
