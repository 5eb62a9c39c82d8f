"""`txn_options`: the options that name a batch write."""

import pytest

from sparklog import CallError, txn_options


def test_a_write_is_named_by_two_options() -> None:
    assert txn_options("job", 0) == {"txnAppId": "job", "txnVersion": "0"}
    assert txn_options("job of /a b", 2**62) == {"txnAppId": "job of /a b", "txnVersion": "4611686018427387904"}


@pytest.mark.parametrize(("name", "number", "said"), [("", 1, "`txnAppId`"), ("job", -1, "`number` has the value -1")])
def test_a_name_that_names_nothing_is_refused(name: str, number: int, said: str) -> None:
    with pytest.raises(CallError, match=said) as caught:
        txn_options(name, number)
    assert caught.value.id == "OPTION_VALUE"


@pytest.mark.parametrize(
    ("name", "number", "said"),
    [
        ("a", "b", "`number` is 'b', of type str; it must be an integer"),
        ("a", 1.5, "`number` is 1.5, of type float"),
        ("a", True, "`number` is True, of type bool"),
        (1, 2, "`name` is 1, of type int; it must be a string"),
        (None, 2, "`name` is None"),
    ],
)
def test_arguments_of_other_types_are_named(name: object, number: object, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        txn_options(name, number)  # type: ignore[arg-type] # that is the question


def test_a_number_fits_in_64_bits() -> None:
    assert txn_options("a", 2**63 - 1)["txnVersion"] == str(2**63 - 1)
    with pytest.raises(CallError, match="less than 2\\^63"):
        txn_options("a", 2**63)
