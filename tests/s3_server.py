"""A real S3 server on the loopback (moto's), and one that takes connections and never answers."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch
from uuid import uuid4

import boto3
import pytest
import s3fs
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

REGION = "us-east-1"

logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line per request


def _settings(endpoint: str) -> dict[str, str]:
    """Variables that S3 clients of any kind read: s3fs, delta-rs and polars' own."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
    }


@contextmanager
def leading_to(endpoint: str) -> Iterator[None]:
    """The environment leads to an endpoint, and s3fs forgets its earlier connections."""
    with patch.dict(os.environ, _settings(endpoint)):
        s3fs.S3FileSystem.clear_instance_cache()
        yield
    s3fs.S3FileSystem.clear_instance_cache()


@contextmanager
def running() -> Iterator[str]:
    """Address of a server in this process."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def new_bucket(endpoint: str) -> str:
    """URL of an empty bucket."""
    name = f"bucket-{uuid4().hex[:12]}"
    boto3.client("s3", endpoint_url=endpoint, region_name=REGION).create_bucket(Bucket=name)
    return f"s3://{name}"


@contextmanager
def served() -> Iterator[str]:
    """URL of an empty bucket on a server of its own; the environment leads to it."""
    with running() as endpoint, leading_to(endpoint):
        yield new_bucket(endpoint)


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """Address of the server."""
    with running() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(s3_endpoint: str) -> Iterator[str]:
    """URL of an empty bucket; the environment of this process, and of those it starts, leads to it."""
    with leading_to(s3_endpoint):
        yield new_bucket(s3_endpoint)


@contextmanager
def frozen_endpoint() -> Iterator[str]:
    """Address of a server that accepts connections and is silent; the environment leads to it meanwhile."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        held: list[socket.socket] = []

        def hold() -> None:
            while True:
                try:
                    held.append(listening.accept()[0])
                except OSError:
                    return

        threading.Thread(target=hold, daemon=True).start()
        endpoint = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with leading_to(endpoint):
            yield endpoint
        for one in held:
            one.close()
