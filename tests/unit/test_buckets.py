"""Which client asks a bucket of S3, by the settings and the environment."""

import os
import pickle
import subprocess
import sys

import pytest
from pyarrow.fs import S3FileSystem

import sparklog
from sparklog.store import objects
from sparklog.store.arrow import ArrowClient
from sparklog.store.buckets import is_for_obstore
from sparklog.store.objects import ObjectClient
from sparklog.store.stores import open_store

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "very-secret"}
WEB_IDENTITY = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": "arn:aws:iam::1:role/r"}
FULL_URI = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1"}
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
        ("bucket", "", WEB_IDENTITY | NO_FILES, True),
        ("bucket", "", WEB_IDENTITY | FILES, False),
        ("bucket", "", WEB_IDENTITY | ONLY_CONFIG, False),
        ("bucket", "", WEB_IDENTITY | FILES | {"AWS_PROFILE": "other"}, False),
        ("bucket", "", FULL_URI | NO_FILES, False),
        ("bucket", "", FULL_URI | NO_FILES | {"AWS_CONTAINER_AUTHORIZATION_TOKEN": "token"}, False),
        ("bucket", "", FULL_URI | NO_FILES | {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/token"}, True),
        ("bucket", "", FULL_URI | NO_FILES | {"AWS_SKIP_SIGNATURE": "true"}, False),
        ("bucket", "", FULL_URI | FILES | {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/token"}, False),
        ("bucket", "", {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2"} | NO_FILES, True),
        ("bucket", "", {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2"} | FILES, False),
        ("bucket", "", {"AWS_SKIP_SIGNATURE": "true"} | FILES, False),
        ("bucket", "", {"AWS_SKIP_SIGNATURE": "false"} | FILES, False),
        ("bucket", "", {"AWS_SKIP_SIGNATURE": "TRUE", "AWS_EC2_METADATA_DISABLED": "true"} | NO_FILES, True),
        ("bucket", "", {"AWS_SKIP_SIGNATURE": "false", "AWS_EC2_METADATA_DISABLED": "true"} | NO_FILES, False),
        ("bucket", "", FILES, False),
        ("bucket", "", ONLY_CONFIG, False),
        ("bucket", "", NO_FILES | {"AWS_PROFILE": "other"}, False),
        ("bucket", "", NO_FILES | {"AWS_DEFAULT_PROFILE": "other"}, False),
        ("bucket", "", NO_FILES, True),
        ("bucket", "", NO_FILES | {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1338"}, False),
        ("bucket", "", KEYS | NO_FILES | {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1338"}, True),
        ("bucket", "", NO_FILES | {"AWS_EC2_METADATA_DISABLED": "true"}, False),
        ("bucket", "endpoint_override=127.0.0.1:9000&scheme=http&region=us-east-1", KEYS | NO_FILES, True),
        ("bucket", "region=us-east-1&allow_bucket_creation=true", KEYS | NO_FILES, False),
        ("bucket", "nonsense=1", KEYS | NO_FILES, False),
        ("bucket", "nonsense=", KEYS | NO_FILES, False),
        ("bucket", "region=x&nonsense", KEYS | NO_FILES, False),
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
    config = client.store.config
    assert config["endpoint"] == config["endpoint_url_s3"] == host
    assert config["region"] == settings.partition("&")[0].removeprefix("region=")
    assert store.above().client is client
    options = store.storage_options("s3://other/table")
    assert options.get("aws_endpoint_url", "") == ("" if "amazonaws" in host else host)
    assert (options.get("aws_allow_http") == "true") is host.startswith("http:")
    assert store.storage_options("gs://other/table") == {}
    assert "very-secret" not in f"{store!r}{client!r}{client.store!r}{options}"
    again = pickle.loads(pickle.dumps(store))
    assert isinstance(again.client, ObjectClient) and again.client.store.config == config
    assert b"very-secret" not in pickle.dumps(store)


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("region", ["cn-north-1", "us-iso-east-1", "us-isob-west-1", "eu-isoe-west-1", "eusc-de-east-1", "new-land-1"])
def test_regions_of_other_domains_are_asked_by_pyarrow(region):
    store = open_store(f"s3a://bucket/events?region={region}")
    assert isinstance(store.client, ArrowClient)
    assert store.lists_in_order
    assert isinstance(open_store(f"s3a://bucket/events?region={region}&endpoint_override=localhost:9000").client, ObjectClient)


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("region", ["us-east-1", "us-gov-west-1", "ap-southeast-7", "il-central-1", "mx-central-1"])
def test_regions_of_aws_are_asked_by_obstore(region):
    assert isinstance(open_store(f"s3a://bucket/events?region={region}").client, ObjectClient)


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("bucket", ["with.dots", "with_lines", "Capitals", "-begins", "ends-"])
def test_a_bucket_that_no_server_can_be_named_after_is_in_the_path(bucket):
    config = open_store(f"s3a://{bucket}/events?region=eu-west-1").client.store.config
    assert config["endpoint"] == "https://s3.eu-west-1.amazonaws.com"
    assert str(config["virtual_hosted_style_request"]).lower() == "false"


@pytest.mark.usefixtures("keys")
def test_the_region_is_the_one_that_pyarrow_takes(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-2")
    assert open_store("s3a://bucket/events").client.store.config["region"] == S3FileSystem().region == "eu-west-2"


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("skipped", ["", "true", "false"])
def test_requests_are_signed_if_there_are_keys(monkeypatch, skipped):
    """pyarrow does not know the variable."""
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", skipped or "no")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert str(open_store("s3a://bucket/events").client.store.config["skip_signature"]).lower() == "false"
    for name in KEYS:
        monkeypatch.delenv(name)
    config = open_store("s3a://bucket/events").client.store.config
    assert str(config["skip_signature"]).lower() == ("true" if skipped == "true" else "false")


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("name", "value", "client"),
    [
        ("AWS_S3_EXPRESS", "true", ArrowClient),
        ("AWS_CHECKSUM_ALGORITHM", "crc32", ArrowClient),
        ("AWS_CONDITIONAL_PUT", "zzz", ArrowClient),
        ("AWS_SKIP_SIGNATURE", "maybe", ObjectClient),
        ("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "maybe", ObjectClient),
    ],
)
def test_a_value_that_obstore_refuses_in_the_environment(monkeypatch, name, value, client):
    """pyarrow asks, unless sparklog tells obstore another value in its place."""
    monkeypatch.setenv(name, value)
    assert isinstance(open_store("s3a://bucket/events?region=eu-west-1").client, client)


def test_the_files_of_keys_are_looked_for_without_a_home_directory(tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / ".aws").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    assert is_for_obstore("bucket", "", WEB_IDENTITY)
    (home / ".aws" / "config").touch()
    assert not is_for_obstore("bucket", "", WEB_IDENTITY)
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", lambda _: {}[0])
    assert is_for_obstore("bucket", "", WEB_IDENTITY)
    assert is_for_obstore("bucket", "", WEB_IDENTITY | {"AWS_CONFIG_FILE": "~nobody-of-this-name/config"})


@pytest.mark.usefixtures("keys")
def test_settings_that_neither_client_knows():
    for nonsense in ("nonsense=1", "region=x&nonsense=", "region=x&nonsense"):
        with pytest.raises(sparklog.CallError, match=r"OPTION_VALUE.*nonsense.*endpoint_override, scheme and region") as raised:
            open_store(f"s3a://bucket/some/events?{nonsense}").look("")
        assert "s3a://bucket/some/events?" in str(raised.value)
    with pytest.raises(sparklog.CallError, match=r"OPTION_VALUE.*'ftp'.*endpoint_override, scheme and region"):
        open_store("s3a://bucket/events?region=x&scheme=ftp").look("")


@pytest.mark.usefixtures("keys")
def test_pyarrow_asks_where_obstore_is_not_installed():
    program = (
        "import sys; sys.modules['obstore'] = None; from sparklog.store.stores import open_store; "
        "print(type(open_store('s3a://bucket/events?region=eu-west-1').client).__name__)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout == "ArrowClient\n"


def test_clocks_that_are_apart_are_told():
    words = "Generic S3 error: Client error with status 403 Forbidden: <Error><Code>RequestTimeTooSkewed</Code></Error>"
    assert "clocks" in str(objects._error(words))
