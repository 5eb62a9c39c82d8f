"""Shows the section `Example` of a docstring as code and output, as griffe shows one that is called `Examples`."""

from typing import Any

from griffe import Extension, Object


class Examples(Extension):
    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
