#!/usr/bin/env python3
"""Writes the seeds of the HTTP target: a byte for how the client ends, then what it sends. Usage: http_request_seeds.py FOLDER"""
import pathlib
import sys

GET = b"GET /ab HTTP/1.1\r\nHost: x\r\n\r\n"
SEEDS = [
    b"\x01" + GET, b"\x01" + GET.replace(b"ab", b"a"), b"\x01" + GET.replace(b"ab", b"abcd"), b"\x01" + GET.replace(b"ab", b""),
    b"\x01" + GET.replace(b"ab", b"abc?x=y"), b"\x01" + GET + GET, b"\x02" + GET, b"\x00" + GET, b"\x03" + GET, b"\x00", b"\x00GET",
    b"\x01GET /ab HTTP/1.0\r\n\r\n", b"\x01GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", b"\x00HEAD /abc HTTP/1.1\r\n\r\n",
    b"\x00POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"\x00POST /abc HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc" + GET,
    b"\x00POST /a HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", b"\x00POST /a HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"\x00POST /a HTTP/1.1\r\nContent-Length: 99999\r\n\r\n" + b"a" * 9000, b"\x00POST /a HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc",
    b"\x00POST /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    b"\x00POST /abc HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"\x00POST /abc HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n" + b"a" * 4096 + b"\r\n1000\r\n" + b"a" * 4096 + b"\r\n",
    b"\x00POST /abc HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"\x00GET / HTTP/9.9\r\n\r\n", b"\x00\x16\x03\x01\r\n\r\n",
    b"\x00POST /abc HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nTrailer: z\r\n\r\n",
    b"\x00GET / HTTP/1.1\r\nX: " + b"a" * 20000 + b"\r\n\r\n", b"\x00GET /a HTTP/1.1\r\nX: a\r\n b\r\n\r\n", b"\x00\r\n\r\n" + GET,
    b"\x01GET /ab HTTP/1.1\r\nConnection: close\r\n\r\n", b"\x00OPTIONS * HTTP/1.1\r\n\r\n", b"\x00GET http://h/a HTTP/1.1\r\n\r\n",
]

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for number, seed in enumerate(SEEDS):
    (folder / f"{number:02d}").write_bytes(seed)
