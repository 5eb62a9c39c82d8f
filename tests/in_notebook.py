"""How a notebook shows a value: by the formatters of Jupyter's kernel for Python."""

from IPython.core.formatters import HTMLFormatter, PNGFormatter


def html(value: object) -> str:
    """The HTML of a value in a notebook."""
    found: str | None = HTMLFormatter()(value)
    assert found is not None, f"a notebook has no HTML of {value!r}"
    return found


def png(value: object) -> bytes:
    """The picture of a value in a notebook."""
    found: bytes | None = PNGFormatter()(value)
    assert found is not None, f"a notebook has no picture of {value!r}"
    return found
