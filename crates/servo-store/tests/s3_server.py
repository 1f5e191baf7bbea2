"""An S3-speaking server for tests: prints its port, and ends when its standard input is closed."""

import os
import threading

from moto.server import DomainDispatcherApplication, create_backend_app
from waitress.server import create_server


def end_with_the_test() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


threading.Thread(target=end_with_the_test, daemon=True).start()
# One thread: moto checks a condition and writes in two steps.
server = create_server(
    DomainDispatcherApplication(create_backend_app), host="127.0.0.1", port=0, threads=1
)
print(server.effective_port, flush=True)
server.run()
