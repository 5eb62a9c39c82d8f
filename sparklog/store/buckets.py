"""The client of a bucket of S3, which is obstore, and the keys that sign its requests. FORMAT.md section 2.

There is one rule of keys. Requests have the first keys of this list that exist:

1. the keys in the `storage_options` of a table;
2. AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the environment; or no keys, if it has AWS_SKIP_SIGNATURE=true instead;
3. keys from boto3, if it is installed: of a profile, SSO, a process, or the role of a web identity, a container or the machine;
4. keys from obstore itself: of the role of a web identity, a container or the machine.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from sparklog.errors import SparklogError
from sparklog.store.arrow import WITHOUT_ORDER, options_of_bucket

if TYPE_CHECKING:
    from obstore.auth.boto3 import Boto3CredentialProvider
    from obstore.store import S3Store

    from sparklog.store.objects import ObjectClient

_SETTINGS = {"endpoint_override", "scheme", "region"}
"""The settings of a URL, by the names that pyarrow gives them."""
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGIONS = ("AWS_DEFAULT_REGION", "AWS_REGION")
_PROFILES = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
_TRUE = ("1", "true", "on", "yes", "y")
_BUCKET_IN_HOST = re.compile("[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_READ_TIMEOUT_S = 3
_RETRY_S = 6
_RETRIES = 10
_REQUEST_TIMEOUT_S = 600
"""A request that goes on may take as long: a large one by a slow network. Without this setting, obstore gives up after 30 s."""
_KEYS_LIVE_S = 300
"""boto3 is asked again after this time. It gives keys that live for ten minutes or more."""


def client_of_bucket(root: str, settings: str) -> ObjectClient:
    """The client of a root's bucket, by settings of a URL, such as `region=eu-west-1`, and by the environment.

    The root begins with the bucket. CallError S3_EXTRA; OPTION_VALUE for settings of no use. OSError if there are no keys.
    """
    bucket, told = root.partition("/")[0], dict(parse_qsl(settings, keep_blank_values=True))
    if not find_spec("obstore"):
        raise SparklogError("S3_EXTRA", module="obstore", root=f"s3a://{root}")
    wrong = sorted(told.keys() - _SETTINGS) or [each for each in [told.get("scheme", "http")] if each not in ("http", "https")]
    if wrong:
        reason = f"{wrong[0]!r} is no setting of a bucket; give endpoint_override, scheme (http or https) or region, or a `filesystem`"
        raise SparklogError("OPTION_VALUE", option="path", value=f"s3a://{root}?{settings}", reason=reason)
    if bucket.endswith(WITHOUT_ORDER):
        reason = "it is a directory bucket; give a `filesystem` that reads it, such as pyarrow.fs.S3FileSystem()"
        raise SparklogError("OPTION_VALUE", option="path", value=f"s3a://{root}", reason=reason)
    from obstore.store import S3Store

    from sparklog.store.objects import ObjectClient, faults

    address, region = _told(told, "endpoint_override", _ENDPOINTS), _told(told, "region", _REGIONS)
    region = region or ("us-east-1" if address else _region_of(bucket))
    options = options_of_bucket(region, address, told.get("scheme", ""))
    # AWS is asked under the name of the bucket, if a server can have that name.
    host = f"{bucket}." if _BUCKET_IN_HOST.fullmatch(bucket) else ""
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    endpoint = options.get("aws_endpoint_url") or f"https://{host}s3.{region}.{domain}"
    signing = _signing({})
    try:
        with faults():
            store = S3Store(
                bucket,
                region=region,
                endpoint=endpoint,
                aws_endpoint_url_s3=endpoint,
                virtual_hosted_style_request=bool(host) and not address,
                client_options={
                    "allow_http": endpoint.startswith("http://"),
                    "connect_timeout": _seconds(_READ_TIMEOUT_S),
                    "read_timeout": _seconds(_READ_TIMEOUT_S),
                    "timeout": _seconds(_REQUEST_TIMEOUT_S),
                },
                retry_config={"max_retries": _RETRIES, "retry_timeout": _seconds(_RETRY_S)},
                **signing,
            )
    except OSError as error:
        raise OSError(f"obstore refuses a variable AWS_… of the environment: {error}") from None
    # deltalake then asks the same places for keys as boto3 does; otherwise it asks them at AWS alone.
    return ObjectClient(store, bucket, options | ({"aws_force_credential_load": "true"} if "credential_provider" in signing else {}))


def _region_of(bucket: str) -> str:
    """The region that AWS tells for a bucket, by one request."""
    from pyarrow.fs import resolve_s3_region

    return str(resolve_s3_region(bucket))


def _signing(given: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of obstore that say how requests are signed, where these options are given. This is the rule of the module.

    CallError OPTION_VALUE for a profile without boto3; OSError if boto3 finds no keys.
    """
    names = {name.lower().removeprefix("aws_") for name in given}
    if names & {"access_key_id", "skip_signature"}:
        return {}
    has_keys = all(map(os.environ.get, _KEYS))
    is_unsigned = not has_keys and os.environ.get("AWS_SKIP_SIGNATURE", "").lower() in _TRUE
    if has_keys or is_unsigned:
        return {"skip_signature": is_unsigned}
    if find_spec("boto3"):
        return {"skip_signature": False, "credential_provider": _keys_of_boto3()}
    if profile := next(filter(os.environ.get, _PROFILES), None):
        reason = "boto3 reads profiles, and it is not installed; pip install 'sparklog[aws]', or give keys in the environment"
        raise SparklogError("OPTION_VALUE", option=profile, value=os.environ[profile], reason=reason)
    return {"skip_signature": False}


def _keys_of_boto3() -> Boto3CredentialProvider:
    from botocore.exceptions import BotoCoreError
    from obstore.auth.boto3 import Boto3CredentialProvider

    try:
        return Boto3CredentialProvider(ttl=_seconds(_KEYS_LIVE_S))
    except (BotoCoreError, ValueError) as error:  # ValueError: it finds none
        found = f"boto3 finds no keys ({error})" if isinstance(error, BotoCoreError) else "boto3 finds no keys"
        raise OSError(f"{found}. Give keys, for instance in the environment; for a public bucket, AWS_SKIP_SIGNATURE=true there") from None


def store_beside_table(url: str, options: Mapping[str, str]) -> S3Store:
    """The store of obstore for the objects below a URL, by the `storage_options` of a table of Delta, and by the environment.

    It takes each option as deltalake takes it: both are made with the Rust crate object_store. Options of deltalake alone have no meaning
    here, and time limits are short, as objects are small. OSError if an option has no legal value.
    """
    from obstore.store import S3Store

    from sparklog.store import objects

    bucket, _, prefix = url.partition("://")[2].partition("/")
    known: Any = {name: value for name, value in options.items() if _is_known(bucket, name, value)}
    with objects.faults():
        return S3Store(
            bucket,
            prefix=prefix,
            config=known,
            client_options={"connect_timeout": _seconds(_READ_TIMEOUT_S), "timeout": _seconds(_READ_TIMEOUT_S)},
            retry_config={"max_retries": _RETRIES, "retry_timeout": _seconds(_RETRY_S)},
            **_signing(known),
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


def _told(settings: Mapping[str, str], name: str, variables: tuple[str, ...]) -> str:
    """A setting of the URL, or the first of the variables of the environment that has a value; "" without either."""
    return settings.get(name) or next((value for each in variables if (value := os.environ.get(each))), "")
