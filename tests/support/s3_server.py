"""A running S3 endpoint for tests, and a bucket of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import botocore.session
from fault_proxy import FaultProxy

from infra.settings import Settings
from infra.storage.bucket import Bucket
from infra.storage.s3_connection import access, connect

KEY_ID, SECRET = "test-key-id", "test-secret-access-key"
_PROGRAM = Path(__file__).with_name("s3_process.py")


@dataclass(frozen=True)
class S3Server:
    """The endpoint on ``port`` of 127.0.0.1."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @cached_property
    def plain_client(self) -> Any:
        """A client of botocore, which shares no code with the product's."""
        return botocore.session.get_session().create_client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-2",
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET,
        )


@contextmanager
def s3_server_process(*, guarded: bool = False) -> Iterator[S3Server]:
    command = [sys.executable, str(_PROGRAM), *(["--guarded"] if guarded else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield S3Server(int(process.stdout.readline()))
        finally:
            process.stdin.close()
            process.wait(30)


class S3Place:
    """A bucket of one test behind a fault proxy. ``plain`` reads and writes it past the proxy and past our code."""

    def __init__(self, server: S3Server, proxy: FaultProxy) -> None:
        self.server = server
        self.proxy = proxy
        self.name = f"bucket-{uuid4().hex[:12]}"
        self.plain = server.plain_client
        self.plain.create_bucket(Bucket=self.name, CreateBucketConfiguration={"LocationConstraint": "us-east-2"})

    def environment(self, **more: str) -> dict[str, str]:
        """Variables that reach the endpoint through the proxy."""
        return {
            "AWS_ENDPOINT_URL": self.proxy.url,
            "AWS_DEFAULT_REGION": "us-east-2",
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            **more,
        }

    def settings(self, **more: Any) -> Settings:
        """Settings that reach the endpoint through the proxy."""
        return Settings(
            s3_endpoint=self.proxy.url,
            s3_region="us-east-2",
            s3_access_key_id=KEY_ID,
            s3_secret_access_key=SECRET,
            **more,
        )

    def bucket(self, *, anonymous: bool = False, **more: Any) -> Bucket:
        """The bucket by the product's client, through the proxy."""
        return Bucket(connect(access(self.settings(**more), anonymous=anonymous)), self.name)

    def put(self, key: str, data: bytes, **more: Any) -> str:
        """Put an object past the proxy; its etag."""
        return self.plain.put_object(Bucket=self.name, Key=key, Body=data, **more)["ETag"].strip('"')

    def get(self, key: str) -> bytes:
        """An object's bytes, past the proxy."""
        return self.plain.get_object(Bucket=self.name, Key=key)["Body"].read()

    def objects(self, prefix: str = "") -> dict[str, bytes]:
        """Every object below a prefix, past the proxy."""
        return {key: self.get(key) for key in self.keys(prefix)}

    def keys(self, prefix: str = "") -> list[str]:
        """Every key below a prefix, past the proxy."""
        pages = self.plain.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        return [one["Key"] for page in pages for one in page.get("Contents", ())]
