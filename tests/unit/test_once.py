"""`write_once`: the options that name a batch write."""

import pytest

from sparklog import CallError, write_once


def test_a_write_is_named_by_two_options() -> None:
    assert write_once("job", 0) == {"txnAppId": "job", "txnVersion": "0"}
    assert write_once("job of /a b", 2**62) == {"txnAppId": "job of /a b", "txnVersion": "4611686018427387904"}


@pytest.mark.parametrize(("name", "number", "said"), [("", 1, "`txnAppId`"), ("job", -1, "`txnVersion` has the value -1")])
def test_a_name_that_names_nothing_is_refused(name: str, number: int, said: str) -> None:
    with pytest.raises(CallError, match=said) as caught:
        write_once(name, number)
    assert caught.value.id == "OPTION_VALUE"
