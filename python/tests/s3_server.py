"""A server that speaks S3, for tests: prints its port, and ends when its standard input is closed."""

from __future__ import annotations

import os
import threading

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import create_server


class Parser(HTTPRequestParser):  # type: ignore[misc]
    """Waits for no body where none was announced, as pyarrow does of the directories it makes."""

    def parse_header(self, header_plus: bytes) -> None:
        """Read the headers of a request."""
        super().parse_header(header_plus)
        if not self.chunked and self.content_length == 0:
            self.expect_continue = False


def end_with_the_test() -> None:
    """Wait until standard input is closed."""
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    HTTPChannel.parser_class = Parser
    threading.Thread(target=end_with_the_test, daemon=True).start()
    # One thread: moto checks a condition and writes in two steps.
    application = DomainDispatcherApplication(create_backend_app)
    server = create_server(application, host="127.0.0.1", port=0, threads=1)
    print(server.effective_port, flush=True)  # noqa: T201 - for whoever has started it
    server.run()
