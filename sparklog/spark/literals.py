"""Values as SQL text. A session with Delta's extension does not bind the parameters of a CALL."""


def literal(text: str) -> str:
    """A text as SQL's."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
