"""Imports Gradio without writing its stub files, which no option turns off.

Each component class compares or writes a `.pyi` file, in the installed package: 0.8 of 1.75 seconds
(`python -X importtime -c "import gradio"`). A Gradio without that function is imported as it is.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

_MODULE = "gradio.component_meta"
_FUNCTION = "create_or_modify_pyi"


@contextmanager
def without_stubs() -> Iterator[None]:
    """Import without stub files inside this block."""
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname == _MODULE else None
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        if hasattr(module, _FUNCTION):
            setattr(module, _FUNCTION, lambda *_: None)
