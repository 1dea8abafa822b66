"""Subroutines without machine code: LLVM's code of them, which kernels take in and turn into machine code with theirs.

Numba turns every compiled function into machine code, with copies of all that it calls. For a subroutine this is
wasted: only kernels call it, and each has its own copy. Without it, a first fit compiles in four fifths of the time,
and kernels compute the same to the last bit.

Subroutines that call Python, such as those that print or raise an error with a number in it, have machine code all the
same. They look up what Numba calls their environment, and Numba sets its address only where there is machine code.
Without it, a print would wait for ever.
"""

from typing import Any

from llvmlite import binding
from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering


class Library(JITCodeLibrary):
    """The code of a subroutine, to be linked into that of its callers."""

    @property
    def calls_python(self) -> bool:
        """Whether it, or what it calls, uses functions of Python's C interface."""
        return any(each.name.startswith("Py") for each in self._final_module.functions)

    def _finalize_final_module(self) -> None:
        """Make the code ready to be linked, and only that unless it calls Python."""
        if self.calls_python:
            super()._finalize_final_module()
            return
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def serialize_using_object_code(self) -> tuple[str, str, Any]:
        """What is kept on disk, without object code if there is none."""
        serialized = super().serialize_using_object_code if self.calls_python else self.serialize_using_bitcode
        found: tuple[str, str, Any] = serialized()
        return found

    @classmethod
    def restored(cls, codegen: Any, name: str, code: bytes) -> "Library":
        """The library that was kept on disk."""
        found = cls(codegen, name)
        found._final_module = binding.parse_bitcode(code)
        found._finalize_final_module()
        return found


def entry(library: Library, description: Any, environment: Any) -> Any:
    """What Numba knows the subroutine by. It leads nowhere, as without a wrapper for Python it always does."""
    name = description.qualname.split(".")[-1]
    return _dynfunc.make_function(description.lookup_module(), name, "", 0, environment, (library,))


@register_pass(mutates_CFG=True, analysis_only=False)
class Lowering(NativeLowering):
    """Numba's step from types to LLVM's code, without the one to machine code."""

    _name = "lowering_to_be_linked"

    def run_pass(self, state: Any) -> bool:
        """Leave the result in the state."""
        context = state.targetctx
        library = state.library = Library(context.codegen(), state.func_id.func_qualname)
        library.enable_object_caching()
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        library.finalize()
        known_by = context.get_executable if library.calls_python else entry
        function = known_by(library, lowered.fndesc, lowered.env)
        context.insert_user_function(function, lowered.fndesc, [library])
        state["cr"] = lowered._replace(cfunc=function)
        return True


class Compiler(CompilerBase):
    """Numba's steps, the last of them replaced."""

    def define_pipelines(self) -> list[PassManager]:
        """The steps."""
        found = PassManager("subroutine")
        usual = DefaultPassBuilder.define_nopython_pipeline(self.state).passes
        found.passes.extend((Lowering if step is NativeLowering else step, text) for step, text in usual)
        found.finalize()
        return [found]


def restored(context: Any, kept: tuple[Any, ...]) -> CompileResult:
    """What Numba compiled in another process, from what it kept."""
    (name, _, code), description, environment, signature, object_mode, lifted, annotation, to_load, _ = kept
    for load in to_load:
        load()
    library = Library.restored(context.codegen(), name, code)
    return CompileResult(
        typing_context=context.typing_context,
        target_context=context,
        entry_point=entry(library, description, environment),
        typing_error=None,
        type_annotation=annotation,
        signature=signature,
        objectmode=object_mode,
        lifted=lifted,
        fndesc=description,
        library=library,
        call_helper=None,
        environment=environment,
        metadata=None,
        reload_init=to_load,
        referenced_envs=[],
    )
