"""Roots in a bucket, and the settings with which programs reach it."""

import random
from pathlib import Path

from pyarrow import fs


def unique(name="root"):
    return f"{name}-{random.SystemRandom().randrange(10**12)}"


def put(s3, name, content):
    with s3.filesystem(background_writes=False).open_output_stream(f"{s3.bucket}/{name}") as out:
        out.write(content)


def copied(s3, folder: Path, prefix=None) -> str:
    """The root at a path, put into the bucket: the URL."""
    prefix = prefix or unique()
    fs.copy_files(str(folder), f"{s3.bucket}/{prefix}", destination_filesystem=s3.filesystem())
    return f"s3a://{s3.bucket}/{prefix}"


def environment(s3, endpoint=None):
    return {
        "AWS_ACCESS_KEY_ID": s3.access_key,
        "AWS_SECRET_ACCESS_KEY": s3.secret_key,
        "AWS_ENDPOINT_URL": endpoint or s3.endpoint,
        "AWS_REGION": s3.region,
    }
