"""The socket that the web server listens on."""

from __future__ import annotations

import errno
import socket

from django.conf import settings

from builder.supervisor import Refused


def listening_socket() -> socket.socket:
    bind, port = settings.HOLDFAST_BIND, settings.PORT
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    try:
        return socket.create_server((bind, port), family=family, backlog=1024)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise Refused(f"Port {port} is taken. Choose another one: PORT={port + 1} make up") from None
        raise Refused(f"Holdfast cannot listen on {bind}, port {port}: {error.strerror}.") from None
