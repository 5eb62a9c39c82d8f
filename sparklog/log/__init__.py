"""Reading a log without Spark: `Log`, `Topic`, and how they show themselves."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparklog.log.log import Log
    from sparklog.log.topic import Topic

__all__ = ["Log", "Topic"]

if not TYPE_CHECKING:  # type checkers then refuse a name that does not exist

    def __getattr__(name: str) -> Any:
        # These import Arrow, which a program that only configures Spark need not wait for.
        if name == "Log":
            from sparklog.log.log import Log

            return Log
        if name == "Topic":
            from sparklog.log.topic import Topic

            return Topic
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
