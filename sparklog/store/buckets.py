"""Which client asks a bucket of S3, and with which settings: obstore where it is installed and finds the keys, otherwise pyarrow."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import pyarrow as pa

from sparklog.errors import SparklogError
from sparklog.store.arrow import WITHOUT_ORDER, ArrowClient, options_of_bucket
from sparklog.store.paths import PathClient

if TYPE_CHECKING:
    from obstore.store import S3Store
    from pyarrow import fs

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGIONS = ("AWS_DEFAULT_REGION", "AWS_REGION")
"""In the order in which pyarrow asks."""
_PROFILES = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
_FILES = {"AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials", "AWS_CONFIG_FILE": "~/.aws/config"}
_KEYS = (
    ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"),
    ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",),
    ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
)
"""The variables that name keys, if all of a line have a value: the keys themselves first."""
_FULL_URI = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
_TRUE = ("1", "true", "on", "yes", "y")
_REGION_OF_AWS = re.compile("(af|ap|ca|eu|il|me|mx|sa|us|us-gov)-[a-z]+-[0-9]+")
"""AWS has other regions under domains that obstore does not know."""
_BUCKET_IN_HOST = re.compile("[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_READ_TIMEOUT_S = 3
"""pyarrow gives up a connection after as long, and asks again for as long as `_RETRY_S`."""
_RETRY_S = 6
_RETRIES = 10
_REQUEST_TIMEOUT_S = 600
"""A request that goes on may take as long: a large one by a slow network. Without this setting, obstore gives up after 30 s."""


def client_of_bucket(root: str, settings: str, max_requests: int) -> PathClient:
    """The client of a root's bucket, by settings of a URL as pyarrow takes them, such as `region=eu-west-1`, and by the environment.

    The root begins with the bucket.
    """
    bucket = root.partition("/")[0]
    if find_spec("obstore") and is_for_obstore(bucket, settings, os.environ):
        from sparklog.store import objects

        region = _told(settings, "region", _REGIONS) or client_of_pyarrow(root, settings, max_requests).filesystem.region
        is_known = _told(settings, "endpoint_override", _ENDPOINTS) or _REGION_OF_AWS.fullmatch(region)
        if objects.can_be_used() and is_known and (client := _client_of_obstore(root, settings, region, max_requests)):
            return client
    return client_of_pyarrow(root, settings, max_requests)


def is_for_obstore(bucket: str, settings: str, environment: Mapping[str, str]) -> bool:
    """Whether obstore understands the settings, and finds the same keys as pyarrow. obstore knows no profiles of ~/.aws."""
    told = dict(parse_qsl(settings, keep_blank_values=True))
    known = told.keys() <= {"endpoint_override", "scheme", "region"} and told.get("scheme", "https") in ("http", "https")
    if not known or bucket.endswith(WITHOUT_ORDER):
        return False
    named = _named_keys(environment)
    if named == _KEYS[0]:
        return True
    if any(map(environment.get, _PROFILES)) or any(_exists(environment.get(name) or file) for name, file in _FILES.items()):
        return False
    if named:
        return True
    if environment.get(_FULL_URI) or environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT"):
        return False  # a token in the environment, and another address of the machine's service, which obstore does not know
    # The machine may have keys. Where it is not to be asked for them, pyarrow reads as anyone may.
    return is_unsigned(environment) or environment.get("AWS_EC2_METADATA_DISABLED", "").lower() != "true"


def _exists(file: str) -> bool:
    """Not by Path, which raises without a home directory, and for a folder that may not be searched."""
    return os.path.exists(os.path.expanduser(file))  # noqa: PTH110, PTH111


def is_unsigned(environment: Mapping[str, str]) -> bool:
    """Whether requests have no signature: a variable, which pyarrow does not know, says it, and the environment names no keys."""
    return environment.get("AWS_SKIP_SIGNATURE", "").lower() in _TRUE and not _named_keys(environment)


def _named_keys(environment: Mapping[str, str]) -> tuple[str, ...] | None:
    return next((names for names in _KEYS if all(map(environment.get, names))), None)


def _client_of_obstore(root: str, settings: str, region: str, max_requests: int) -> PathClient | None:
    """None if obstore refuses a variable of the environment: it takes more of them than pyarrow."""
    from obstore.exceptions import BaseError
    from obstore.store import S3Store

    from sparklog.store.objects import ObjectClient

    bucket = root.partition("/")[0]
    address, scheme = _told(settings, "endpoint_override", _ENDPOINTS), _told(settings, "scheme", ())
    options = options_of_bucket(region, address, scheme)
    # AWS is asked as pyarrow asks: the bucket is in the name of the server, if that can have its name.
    host = f"{bucket}." if _BUCKET_IN_HOST.fullmatch(bucket) else ""
    endpoint = options.get("aws_endpoint_url") or f"https://{host}s3.{region}.amazonaws.com"
    try:
        store = S3Store(
            bucket,
            region=region,
            endpoint=endpoint,
            aws_endpoint_url_s3=endpoint,
            skip_signature=is_unsigned(os.environ),
            virtual_hosted_style_request=bool(host) and not address,
            client_options={
                "allow_http": endpoint.startswith("http://"),
                "connect_timeout": _seconds(_READ_TIMEOUT_S),
                "read_timeout": _seconds(_READ_TIMEOUT_S),
                "timeout": _seconds(_REQUEST_TIMEOUT_S),
            },
            retry_config={"max_retries": _RETRIES, "retry_timeout": _seconds(_RETRY_S)},
        )
    except BaseError:
        return None
    return ObjectClient(store, bucket, options, partial(client_of_pyarrow, root, settings, max_requests), lists_in_order=True)


def store_beside_table(url: str, options: Mapping[str, str]) -> S3Store:
    """The store of obstore for the objects below a URL, by the `storage_options` of a table of Delta, and by the environment.

    It takes each option as deltalake takes it: both are made with the Rust crate object_store. Options of deltalake alone have no meaning
    here, and time limits are short, as objects are small. OSError if an option has no legal value.
    """
    from obstore.store import S3Store

    from sparklog.store import objects

    objects.begin_use()
    bucket, _, prefix = url.partition("://")[2].partition("/")
    known: Any = {name: value for name, value in options.items() if _is_known(bucket, name, value)}
    with objects.faults():
        return S3Store(
            bucket,
            prefix=prefix,
            config=known,
            client_options={"connect_timeout": _seconds(_READ_TIMEOUT_S), "timeout": _seconds(_READ_TIMEOUT_S)},
            retry_config={"max_retries": _RETRIES, "retry_timeout": _seconds(_RETRY_S)},
        )


def _is_known(bucket: str, name: str, value: str) -> bool:
    """Whether obstore knows a setting of this name, other than a time limit."""
    from obstore.exceptions import BaseError, UnknownConfigurationKeyError
    from obstore.store import S3Store

    config: Any = {name: value}
    try:
        S3Store(bucket, config=config)
    except UnknownConfigurationKeyError:
        return False
    except BaseError:
        pass  # a key without its secret, which is another setting
    return not name.lower().endswith("timeout")


def _seconds(count: float) -> datetime.timedelta:
    return datetime.timedelta(seconds=count)


def client_of_pyarrow(root: str, settings: str, max_requests: int) -> ArrowClient:
    """The client of a root's bucket by pyarrow. CallError OPTION_VALUE for settings of no use."""
    bucket = root.partition("/")[0]
    try:
        return ArrowClient(_filesystem(bucket, settings), bucket, max_requests)
    except pa.ArrowInvalid as error:
        reason = f"{error}; give settings that pyarrow takes in a URL, such as endpoint_override, scheme and region"
        raise SparklogError("OPTION_VALUE", option="path", value=f"s3a://{root}?{settings}", reason=reason) from None


def _told(settings: str, name: str, variables: tuple[str, ...]) -> str:
    """A setting of the URL, or the first of the variables of the environment that has a value; "" without either."""
    return dict(parse_qsl(settings)).get(name) or next((value for each in variables if (value := os.environ.get(each))), "")


def _filesystem(bucket: str, settings: str) -> fs.FileSystem:
    """A FileSystem by the settings and the environment. pyarrow itself does not know the variables for the server's address."""
    from pyarrow.fs import FileSystem, S3FileSystem

    endpoint = _told("", "", _ENDPOINTS)
    if settings or not (endpoint or _told("", "", _REGIONS)):
        # This asks AWS for the region of the bucket, if no setting tells it.
        return FileSystem.from_uri(f"s3://{bucket}?{settings}")[0]
    scheme, _, address = endpoint.rpartition("://")
    return S3FileSystem(endpoint_override=address or None, scheme=scheme or None)
