"""Ports for servers that tests start at an address which they know before."""

import random
import socket

HOST = "127.0.0.1"


def free_port(*hosts: str) -> int:
    """A port that can be listened on at each of these hosts (127.0.0.1 if there is none).

    The port lies below the ports that Linux gives to clients. So no client takes the port before the server does, or later.
    """
    while True:
        port = random.SystemRandom().randrange(15000, 32000)
        if all(_is_free(host, port) for host in hosts or (HOST,)):
            return port


def free_address() -> str:
    """HOST:PORT, the same."""
    return f"{HOST}:{free_port()}"


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
