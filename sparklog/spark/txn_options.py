"""Names for batch writes, by which a repeated one is known."""

from __future__ import annotations

from sparklog import arguments
from sparklog.errors import SparklogError


def txn_options(name: str, number: int) -> dict[str, str]:
    """The options `txnAppId` and `txnVersion`, which make a batch write exactly once: for `df.write.options(**txn_options(name, number))`.

    `name` tells the writes of one program from those of others; a topic skips a write if it holds one of the same name with the same or a
    higher `number`, which is at least 0. In the function of `foreachBatch`, `number` is the epoch that Spark passes, and each write to a
    topic has a name of its own. A query with a new checkpoint counts its epochs from 0 again, so it needs new names: take the checkpoint's
    path into them. TypeError if the name is not a string or the number not an integer; CallError if the name is empty or the number
    negative.
    """
    if not arguments.text("name", name):
        raise SparklogError("OPTION_VALUE", option="txnAppId", value="''", reason="a write needs a name that tells it from others")
    return {"txnAppId": name, "txnVersion": str(arguments.long("number", number))}
