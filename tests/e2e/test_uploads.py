"""Files that are sent to pages, over the production server: all of a body together has one limit."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings

from tests.builder.test_hooks_over_http import exchange

PART = b'--x\r\nContent-Disposition: form-data; name="f%d"; filename="f%d"\r\n\r\n%s\r\n'
MOST = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
PATHS = ("/login/", "/forms/anybody-may-post-here/", "/flows/import/", "/no/such/page/")


def files(*sizes: int) -> bytes:
    return b"".join(PART % (n, n, b"a" * size) for n, size in enumerate(sizes)) + b"--x--\r\n"


def post(path: str, body: bytes, kind: str = "multipart/form-data; boundary=x", chunked: bool = False) -> bytes:
    length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(body)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {kind}\r\n".encode()
    return head + length + b"\r\n\r\n" + (b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body)


def test_all_files_of_a_body_together_are_bounded(starting):
    """Also where no file is asked for and nobody has signed in. The largest that may be is looked at, and refused for its token."""
    port = urlsplit(starting().url).port
    frame = len(files(0, 0, 0))
    for path in PATHS:
        for body in (files(MOST - 10, 0), files(*[MOST // 3] * 3), files(*[1000] * 2500), files(*[5 * MOST // 2] * 3)):
            for chunked in (False, True):
                status, headers, told = exchange(port, post(path, body, chunked=chunked))
                assert status == 413 and b"That is too large" in told and headers["content-security-policy"], path
        assert exchange(port, post(path, files(*[(MOST - frame) // 3] * 3)))[0] in (403, 404), path
    status, headers, told = exchange(port, post("/api/v1/workflows/import", b"1" * (MOST + 1), "application/json"))
    assert status == 413 and headers["content-type"].startswith("application/json") and b"2,097,152 bytes" in told
    announced = post("/login/", b"").replace(b"Content-Length: 0", b"Content-Length: 99999999")
    assert exchange(port, announced)[0] == 413, "by its head alone"
