"""How a bucket of S3 is asked, and with which keys, by the settings and the environment."""

import os
import pickle
import sys

import boto3
import pytest
from pyarrow.fs import S3FileSystem

import sparklog
from sparklog.store import objects
from sparklog.store.buckets import store_beside_table
from sparklog.store.objects import ObjectClient
from sparklog.store.stores import open_store

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "very-secret"}
NOTHING = {"AWS_SHARED_CREDENTIALS_FILE": "/nothing", "AWS_CONFIG_FILE": "/nothing", "AWS_EC2_METADATA_DISABLED": "true"}
UNSIGNED = {"AWS_SKIP_SIGNATURE": "TRUE"}
URL = "s3a://bucket/events?region=eu-west-1"


@pytest.fixture
def keys(monkeypatch):
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in (KEYS | NOTHING).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def profiles(keys, tmp_path, monkeypatch):
    """The files of AWS with two profiles, and no keys in the environment."""
    for name in KEYS:
        monkeypatch.delenv(name)
    file = tmp_path / "credentials"
    lines = (f"[{each}]\naws_access_key_id = {each}-key\naws_secret_access_key = very-secret\n" for each in ("default", "other"))
    file.write_text("".join(lines))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))


def signer():
    """The key that signs the requests for a bucket, or a word."""
    store = open_store(URL).client.store
    if store.credential_provider:
        return store.credential_provider()["access_key_id"]
    return "nobody" if str(store.config["skip_signature"]).lower() == "true" else store.config.get("access_key_id", "obstore")


@pytest.mark.usefixtures("profiles")
@pytest.mark.parametrize(
    ("environment", "key"),
    [
        (KEYS, "environment"),
        (KEYS | UNSIGNED | {"AWS_PROFILE": "other"}, "environment"),
        (UNSIGNED, "nobody"),
        (UNSIGNED | {"AWS_PROFILE": "other"}, "nobody"),
        ({"AWS_SKIP_SIGNATURE": "false"}, "default-key"),
        ({}, "default-key"),
        ({"AWS_PROFILE": "other"}, "other-key"),
        ({"AWS_DEFAULT_PROFILE": "other"}, "other-key"),
    ],
)
def test_who_signs_requests(environment, key, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    asked = signer()
    assert asked == (key if key != "environment" else "obstore")
    table = store_beside_table("s3://bucket/table.members", open_store(URL).storage_options("s3://bucket/table"))
    assert (table.credential_provider is None) is (key in ("environment", "nobody"))


@pytest.mark.usefixtures("profiles")
def test_the_keys_of_a_table_are_its_own():
    for given in ({"aws_access_key_id": "own", "aws_secret_access_key": "very-secret"}, {"SKIP_SIGNATURE": "true"}):
        store = store_beside_table("s3://bucket/table", given)
        assert store.credential_provider is None
        assert "own" in store.config.values() or str(store.config["skip_signature"]).lower() == "true"


@pytest.mark.usefixtures("profiles")
def test_a_process_may_give_the_keys(tmp_path, monkeypatch):
    """As AWS's own programs run it: `credential_process`."""
    file = tmp_path / "config"
    told = '{"Version": 1, "AccessKeyId": "of-process", "SecretAccessKey": "very-secret"}'
    file.write_text(f"[profile p]\ncredential_process = echo '{told}'\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))
    monkeypatch.setenv("AWS_PROFILE", "p")
    assert signer() == "of-process"


@pytest.mark.usefixtures("profiles")
def test_a_profile_without_boto3_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    assert signer() == "obstore"
    monkeypatch.setenv("AWS_DEFAULT_PROFILE", "other")
    with pytest.raises(sparklog.CallError, match=r"OPTION_VALUE.*AWS_DEFAULT_PROFILE.*other.*sparklog\[aws\]"):
        signer()
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    assert signer() == "obstore"


@pytest.mark.usefixtures("profiles")
@pytest.mark.parametrize(
    ("environment", "problem"),
    [({"AWS_SHARED_CREDENTIALS_FILE": "/nothing"}, "boto3 finds no keys[.]"), ({"AWS_PROFILE": "absent"}, "boto3 finds no keys .*absent")],
)
def test_no_keys(environment, problem, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(OSError, match=f"{problem}.*AWS_SKIP_SIGNATURE=true"):
        signer()


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
@pytest.mark.parametrize("region", ["us-gov-west-1", "ap-southeast-7", "il-central-1", "mx-central-1", "cn-north-1"])
def test_the_server_of_aws_in_a_region(region):
    endpoint = boto3.Session().client("s3", region_name=region).meta.endpoint_url
    assert open_store(f"s3a://bucket/events?region={region}").client.store.config["endpoint"] == endpoint.replace("//", "//bucket.")


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
@pytest.mark.parametrize("variable", ["AWS_S3_EXPRESS", "AWS_CHECKSUM_ALGORITHM", "AWS_CONDITIONAL_PUT"])
def test_a_value_that_obstore_refuses_in_the_environment(monkeypatch, variable):
    monkeypatch.setenv(variable, "zzz")
    with pytest.raises(OSError, match="obstore refuses a variable AWS_… of the environment: Generic Config error"):
        open_store(URL).look("")


@pytest.mark.usefixtures("keys")
def test_settings_that_a_bucket_does_not_have():
    for nonsense, named in {
        "nonsense=1": "nonsense",
        "region=x&nonsense=": "nonsense",
        "scheme=ftp": "ftp",
        "secret_key=x": "secret_key",
    }.items():
        with pytest.raises(
            sparklog.CallError, match=rf"OPTION_VALUE.*'{named}'.*endpoint_override, scheme .* or region, or a `filesystem`"
        ):
            open_store(f"s3a://bucket/some/events?{nonsense}").look("")


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("bucket", ["bucket--usw2-az1--x-s3", "reader--usw2-az1--xa-s3"])
def test_a_directory_bucket_is_read_through_a_filesystem(bucket):
    with pytest.raises(sparklog.CallError, match=r"OPTION_VALUE.*directory bucket; give a `filesystem`"):
        open_store(f"s3a://{bucket}/events?region=us-west-2").look("")
    assert not open_store(f"s3a://{bucket}/events", S3FileSystem(region="us-west-2")).lists_in_order


@pytest.mark.usefixtures("keys")
def test_a_bucket_needs_obstore_or_a_filesystem(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(sparklog.CallError, match=r"S3_EXTRA.*s3a://bucket/events .*obstore.*sparklog\[s3\].*`filesystem=`"):
        open_store(URL).look("")
    assert open_store("s3a://bucket/events", S3FileSystem(region="us-west-2")).lists_in_order


def test_clocks_that_are_apart_are_told():
    words = "Generic S3 error: Client error with status 403 Forbidden: <Error><Code>RequestTimeTooSkewed</Code></Error>"
    with pytest.raises(OSError, match="clocks"), objects.faults():
        raise Exception(words)  # as obstore does
