"""How subroutines are compiled: for callers to link, without machine code of their own, which nobody would call.

Numba makes machine code of every function, and optimises it before it is linked into the next one, which is optimised
with all that it calls. The machine code of kernels is the same without it, and compiling takes less time.
"""

from collections.abc import Callable
from typing import Any

from numba.core import codegen, compiler

KIND = "bitcode"  # Numba's word for what a file keeps of a library without machine code


class Linked(codegen.JITCodeLibrary):
    """LLVM's code of one subroutine and of all that it calls."""

    @classmethod
    def kept(cls, of: Any, name: str, bitcode: bytes) -> "Linked":
        """A library from its file."""
        found = cls(of, name)
        found._final_module = found._shared_module = codegen.ll.parse_bitcode(bitcode)
        found._finalized = True
        return found

    @property
    def codegen(self) -> "Linked":
        """What is told of the environment that only Python objects in compiled code would ask for: nothing keeps it."""
        return self

    def set_env(self, env_name: str, env: Any) -> None:
        """Nothing: the address would be in machine code."""

    def get_pointer_to_function(self, name: str) -> int:
        """No address: Python does not call it."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """What a file keeps."""
        self._ensure_finalized()
        return self.name, KIND, self._get_module_for_linking().as_bitcode()

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class LinkedCompiler(compiler.Compiler):
    """Numba's compiler, for subroutines."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """What was compiled of a function."""
        self.state.library = Linked(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


def rebuilt(context: Any, payload: tuple[Any, ...]) -> Any:
    """A subroutine from what was kept of it; None if it is a kernel's."""
    (name, kind, data), fndesc, env, signature, objectmode, lifted, annotation, reload_init, environments = (
        payload
    )
    if kind != KIND:
        return None
    for function in reload_init:
        function()
    library = Linked.kept(context.codegen(), name, data)
    return compiler.compile_result(
        target_context=context, typing_context=context.typing_context, library=library, environment=env,
        entry_point=context.get_executable(library, fndesc, env), fndesc=fndesc, type_annotation=annotation,
        signature=signature, objectmode=objectmode, lifted=lifted, reload_init=reload_init,
        referenced_envs=environments,
    )  # fmt: skip
