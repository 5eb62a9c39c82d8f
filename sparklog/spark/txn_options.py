"""Names for batch writes, by which a repeated one is known."""

from __future__ import annotations

from sparklog import arguments
from sparklog.errors import SparklogError


def txn_options(name: str, number: int) -> dict[str, str]:
    """Makes the options with which a batch write is made exactly once: `df.write.options(**txn_options(name, number))`.

    A topic skips a write if it holds one of the same name with the same or a higher number. In the function of `foreachBatch`, the number
    is the epoch that Spark passes, and each write to a topic has a name of its own. A query with a new checkpoint counts its epochs from 0
    again, so it needs new names: take the checkpoint's path into them.

    Args:
        name: The name that distinguishes the writes of one program from the writes of other programs.
        number: The number of the write, at least 0.

    Returns:
        The options `txnAppId` and `txnVersion`.

    Raises:
        TypeError: If the name is not a string, or the number not an integer.
        CallError: OPTION_VALUE if the name is empty, or the number negative.

    Example:
        >>> sparklog.txn_options("nightly-load", 20240501)
        {'txnAppId': 'nightly-load', 'txnVersion': '20240501'}
    """
    if not arguments.text("name", name):
        raise SparklogError("OPTION_VALUE", option="txnAppId", value="''", reason="a write needs a name that tells it from others")
    return {"txnAppId": name, "txnVersion": str(arguments.long("number", number))}
