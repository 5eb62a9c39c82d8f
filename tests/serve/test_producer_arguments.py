"""Arguments of `sparklog.Producer` that cannot be: the error names the argument, its value and what it takes."""

import os
from pathlib import Path
from typing import Any

import pytest

import sparklog


def test_arguments_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make: Any = sparklog.Producer
    for given, told in (
        ({"root": tmp_path, "bootstrap_servers": "prod.example:9092"}, "OPTION_CONFLICT.*root and bootstrap_servers"),
        ({"root": tmp_path, "sasl_plain_password": "secret"}, "OPTION_CONFLICT.*root and sasl_plain_password"),
        ({"root": "prod.example:9092"}, "OPTION_VALUE.*give bootstrap_servers="),
        ({"root": tmp_path / os.fsdecode(b"log\xff")}, r"root.*log\\xff.*UTF-8"),
        ({"bootstrap_servers": ""}, "OPTION_VALUE.*give an address"),
        ({"bootstrap_servers": []}, "OPTION_VALUE.*give an address"),
        ({"bootstrap_servers": "h:1", "linger_ms": -1}, "OPTION_VALUE.*linger_ms"),
        ({"compression_type": "rar"}, "OPTION_VALUE.*`compression_type`.*rar.*one of gzip"),
        ({"ssl_cafile": "/nowhere", "security_protocol": "SSL"}, "OPTION_VALUE.*`ssl_cafile`.*/nowhere.*No such file"),
        ({"ssl_cafile": os.devnull}, "OPTION_VALUE.*`ssl_cafile`.*/dev/null.*file of certificates"),
        ({"linger_ms": 900_001}, "OPTION_VALUE.*`linger_ms`.*900001.*from 0 to 900,000"),
        ({"linger_ms": 120_000}, "OPTION_VALUE.*`delivery_timeout_ms`.*120000.*`linger_ms`"),
        ({"max_request_size": 999}, "OPTION_VALUE.*`max_request_size`.*999.*from 1,000 to 1,000,000,000"),
        ({"max_request_size": 10**12}, "OPTION_VALUE.*`max_request_size`"),
        ({"buffer_memory": 1 << 42}, "OPTION_VALUE.*`buffer_memory`"),
        ({"max_block_ms": 10**400}, "OPTION_VALUE.*`max_block_ms`"),
        ({"security_protocol": "TLS"}, "OPTION_VALUE.*`security_protocol`.*TLS.*one of PLAINTEXT"),
        ({"sasl_mechanism": "GSSAPI"}, "OPTION_VALUE.*`sasl_mechanism`.*GSSAPI.*one of PLAIN"),
        ({"security_protocol": "SASL_SSL", "sasl_plain_username": "ann"}, "PRODUCER_SETTINGS.*SASL_SSL.*`sasl_mechanism`"),
        ({"sasl_plain_username": "\ud800"}, "OPTION_VALUE.*`sasl_plain_username`"),
        ({"sasl_plain_password": b"secret"}, "OPTION_VALUE.*`sasl_plain_password`"),
    ):
        with pytest.raises(sparklog.CallError, match=told) as refused:
            make(**(given if {"root", "bootstrap_servers"} & given.keys() else {"bootstrap_servers": "h:1", **given}))
        assert "secret" not in str(refused.value)
    make(bootstrap_servers="h:1", delivery_timeout_ms=0).close(0)
    for given, told in (({}, "needs a root"), ({"bootstrap_servers": "h:1", "transactional_id": "t"}, "transactional_id")):
        with pytest.raises(TypeError, match=told):
            make(**given)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(sparklog.CallError, match="JAVA_NEEDED"):
        make(tmp_path / "log")
    assert not (tmp_path / "log").exists()


def test_a_root_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(sparklog.CallError, match=r"SERVE_START.*file/log"):
        sparklog.Producer(tmp_path / "file" / "log")


def test_a_record_that_cannot_be_is_refused_at_once() -> None:
    """Before it needs a server."""
    producer = sparklog.Producer(bootstrap_servers="127.0.0.1:1")
    send: Any = producer.send
    for given, told in (
        (("__consumer_offsets", b"1"), "servers alone write the positions"),
        (("no topic", b"1"), "TOPIC_NAME_ILLEGAL"),
        (("visits", b"1", None, None, -1), "OPTION_VALUE.*partition"),
        (("visits", b"1", None, None, 10**40), "OPTION_VALUE.*partition.*10{40}"),
        (("visits", b"1", None, None, None, 0), "OPTION_VALUE.*timestamp_ms"),
        (("visits", b"1", None, None, None, 2**63), "OPTION_VALUE.*timestamp_ms.*9223372036854775808.*from 1 to"),
        (("\ud800", b"1"), "TOPIC_NAME_ILLEGAL"),
        (("visits", "\ud800"), "OPTION_VALUE.*`value`.*UTF-8"),
        (("visits", b"1", "\ud800"), "OPTION_VALUE.*`key`.*UTF-8"),
        (("visits", b"1", None, [("\ud800", b"")]), "OPTION_VALUE.*`name in headers`.*UTF-8"),
        (("visits", b"1", None, [("page\0", b"")]), "OPTION_VALUE.*`name in headers`.*NUL"),
        (("visits", b"1", None, [("page", "\ud800")]), "OPTION_VALUE.*`value in headers`.*UTF-8"),
    ):
        with pytest.raises(sparklog.CallError, match=told):
            send(*given)
    of_headers = [(("visits", b"1", None, given), "headers") for given in (0, "ab", {"ab": b""}, ["ab"], [("a",)], [(5, b"")], [("a", 5)])]
    for given, told in (
        ((5, b"1"), "topic"),
        (([], b"1"), "topic"),
        (("visits", 5), "value"),
        (("visits", b"1", 5), "key"),
        (("visits", b"1", None, None, "0"), "partition"),
        *of_headers,
    ):
        with pytest.raises(TypeError, match=f"`.*{told}`"):
            send(*given)
    producer.close()
