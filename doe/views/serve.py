"""Serve a study's page on this machine, made anew when the study has moved on."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from doe.errors import DoeError
from doe.results.report import Report, fingerprint
from doe.results.status import Overview, overview

HOST = "127.0.0.1"
IDLE_SECONDS = 30.0
"""A connection that asks for nothing is closed after this time."""
REST_SECONDS = 5.0
"""A page is not made again sooner than this, however fast runs end."""


Make = Callable[[Overview, bool], Report]
"""Reports on a study as it was read; in short for the first page."""


class Pages:
    """The current page; made when first asked for and again when results have come in."""

    def __init__(self, directory: Path, make: Make, rest: float = REST_SECONDS) -> None:
        self._directory, self._make, self._rest = directory, make, rest
        self._lock = threading.Lock()
        self._page, self._state, self._made = b"", "", 0.0

    def page(self) -> bytes:
        """Return the page of the study in its present state."""
        from doe.views import html
        from doe.views.files import now

        with self._lock:
            read = overview(self._directory)
            state, first = fingerprint(read), not self._page
            if first or (state != self._state and self._rested()):
                self._state = f"{state} in short" if first else state
                report = self._make(read, first)
                self._page = html.render(report, now(), version=self._state).encode()
                self._made = time.monotonic()
            return self._page

    def moment(self) -> dict[str, Any]:
        """Return how far the study is, and the version that the page should have: the old one at
        rest.
        """
        from doe.views import html

        read = overview(self._directory)
        resting = self._state and not self._rested()
        return html.moment(read) | {"version": self._state if resting else fingerprint(read)}

    def _rested(self) -> bool:
        return time.monotonic() - self._made >= self._rest


class _Server(ThreadingHTTPServer):
    """A server whose clients may leave at any moment."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay quiet where a client has reset its connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def make_server(pages: Pages, port: int) -> ThreadingHTTPServer:
    """Return a server for `/` and `/state` on the loopback address alone."""

    class Handler(BaseHTTPRequestHandler):
        timeout = IDLE_SECONDS

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            if self.headers.get("Host", "").rpartition(":")[0] not in (HOST, "localhost"):
                # Another name for this address is a page elsewhere reaching in.
                self.send_error(HTTPStatus.FORBIDDEN)
                return
            try:
                match self.path.partition("?")[0]:
                    case "/" | "/index.html":
                        self._answer(pages.page(), "text/html")
                    case "/state":
                        self._answer(json.dumps(pages.moment()).encode(), "application/json")
                    case _:
                        self.send_error(HTTPStatus.NOT_FOUND)
            except DoeError as error:
                self._answer(f"{error}\n".encode(), "text/plain", HTTPStatus.SERVICE_UNAVAILABLE)

        def _answer(self, body: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet: the terminal belongs to the person."""

    try:
        return _Server((HOST, port), Handler)
    except OSError as error:
        raise DoeError(
            f"cannot listen on {HOST}:{port}: {error.strerror}; choose another port, or 0 for any"
        ) from error


def serve_page(directory: Path, make: Make, port: int) -> None:
    """Serve until interrupted."""
    pages = Pages(directory, make)
    with make_server(pages, port) as server:
        print(f"Page: http://{HOST}:{server.server_address[1]}/ (Ctrl+C ends)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
