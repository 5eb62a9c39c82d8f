"""Which client asks a bucket of S3, by the settings and the environment."""

import os
import pickle
import subprocess
import sys

import pytest

import sparklog
from sparklog.store.arrow import ArrowClient
from sparklog.store.buckets import is_for_obstore
from sparklog.store.objects import ObjectClient
from sparklog.store.stores import open_store

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "very-secret"}
WEB_IDENTITY = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": "arn:aws:iam::1:role/r"}
NO_FILES = {"AWS_SHARED_CREDENTIALS_FILE": "/nothing", "AWS_CONFIG_FILE": "/nothing"}
FILES = {"AWS_SHARED_CREDENTIALS_FILE": __file__, "AWS_CONFIG_FILE": "/nothing"}
ONLY_CONFIG = {"AWS_SHARED_CREDENTIALS_FILE": "/nothing", "AWS_CONFIG_FILE": __file__}


@pytest.mark.parametrize(
    ("bucket", "settings", "environment", "by_obstore"),
    [
        ("bucket", "", KEYS | NO_FILES, True),
        ("bucket", "", KEYS | FILES, True),
        ("bucket", "", KEYS | FILES | {"AWS_PROFILE": "other"}, True),
        ("bucket", "", {"AWS_ACCESS_KEY_ID": "key"} | FILES, False),
        ("bucket", "", WEB_IDENTITY | FILES, True),
        ("bucket", "", WEB_IDENTITY | FILES | {"AWS_PROFILE": "other"}, False),
        ("bucket", "", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1"} | NO_FILES, True),
        ("bucket", "", {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2"} | FILES, True),
        ("bucket", "", {"AWS_SKIP_SIGNATURE": "true"} | FILES, True),
        ("bucket", "", FILES, False),
        ("bucket", "", ONLY_CONFIG, False),
        ("bucket", "", NO_FILES | {"AWS_PROFILE": "other"}, False),
        ("bucket", "", NO_FILES | {"AWS_DEFAULT_PROFILE": "other"}, False),
        ("bucket", "", NO_FILES, True),
        ("bucket", "", NO_FILES | {"AWS_EC2_METADATA_DISABLED": "true"}, False),
        ("bucket", "endpoint_override=127.0.0.1:9000&scheme=http&region=us-east-1", KEYS | NO_FILES, True),
        ("bucket", "region=us-east-1&allow_bucket_creation=true", KEYS | NO_FILES, False),
        ("bucket", "nonsense=1", KEYS | NO_FILES, False),
        ("bucket--usw2-az1--x-s3", "", KEYS | NO_FILES, False),
        ("reader--usw2-az1--xa-s3", "", KEYS | NO_FILES, False),
    ],
)
def test_the_client_of_a_bucket(bucket, settings, environment, by_obstore):
    assert is_for_obstore(bucket, settings, environment) is by_obstore


@pytest.fixture
def keys(monkeypatch):
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in (KEYS | NO_FILES).items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("settings", "endpoint", "host"),
    [
        ("region=eu-west-1", "", "https://bucket.s3.eu-west-1.amazonaws.com"),
        ("region=eu-west-1&scheme=https", "", "https://bucket.s3.eu-west-1.amazonaws.com"),
        ("region=x&endpoint_override=localhost:9000&scheme=http", "https://elsewhere", "http://localhost:9000"),
        ("region=x&endpoint_override=localhost:9000", "", "https://localhost:9000"),
        ("region=x&endpoint_override=http%3A%2F%2Flocalhost%3A9000", "", "http://localhost:9000"),
        ("region=x", "http://localhost:9000", "http://localhost:9000"),
    ],
)
@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_the_server_of_a_bucket(monkeypatch, settings, endpoint, host, variable):
    monkeypatch.setenv("AWS_ENDPOINT", "https://no.one.asks.for.it")
    if endpoint:
        monkeypatch.setenv(variable, endpoint)
    store = open_store(f"s3a://bucket/events?{settings}")
    client = store.client
    assert isinstance(client, ObjectClient)
    config = client._store.config
    assert config["endpoint"] == config["endpoint_url_s3"] == host
    assert config["region"] == settings.partition("&")[0].removeprefix("region=")
    assert store.above().client is client
    options = store.storage_options("s3://other/table")
    assert options.get("aws_endpoint_url", "") == ("" if "amazonaws" in host else host)
    assert (options.get("aws_allow_http") == "true") is host.startswith("http:")
    assert store.storage_options("gs://other/table") == {}
    assert "very-secret" not in f"{store!r}{client!r}{client._store!r}{options}"
    again = pickle.loads(pickle.dumps(store))
    assert isinstance(again.client, ObjectClient) and again.client._store.config == config
    assert b"very-secret" not in pickle.dumps(store)


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("region", ["cn-north-1", "us-iso-east-1"])
def test_regions_of_other_domains_are_asked_by_pyarrow(region):
    store = open_store(f"s3a://bucket/events?region={region}")
    assert isinstance(store.client, ArrowClient)
    assert store.lists_in_order


@pytest.mark.usefixtures("keys")
def test_settings_that_neither_client_knows():
    with pytest.raises(sparklog.CallError, match=r"OPTION_VALUE.*nonsense.*endpoint_override, scheme and region"):
        open_store("s3a://bucket/events?nonsense=1").look("")
    with pytest.raises(sparklog.CallError, match=r"OPTION_VALUE.*'ftp'.*endpoint_override, scheme and region"):
        open_store("s3a://bucket/events?region=x&scheme=ftp").look("")


@pytest.mark.usefixtures("keys")
def test_pyarrow_asks_where_obstore_is_not_installed():
    program = (
        "import sys; sys.modules['obstore'] = None; from sparklog.store.stores import open_store; "
        "print(type(open_store('s3a://bucket/events?region=eu-west-1').client).__name__)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout == "ArrowClient\n"
