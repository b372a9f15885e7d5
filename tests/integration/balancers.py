"""HAProxy, and processes that listen on this machine."""

import shutil
import socket
import subprocess
import time


HOST = "127.0.0.1"
#: None if it is not installed.
HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")


def wait_until_it_listens(process: subprocess.Popen[str], port: int) -> None:
    """Wait for *process* to accept connections on *port*.  Raises RuntimeError if it ends."""
    with socket.socket() as probe:
        while probe.connect_ex((HOST, port)):
            if process.poll() is not None:
                raise RuntimeError(f"{process.args} ended with status {process.returncode}")
            time.sleep(0.1)


def end(process: subprocess.Popen[str]) -> None:
    """End *process* with SIGTERM, if necessary with SIGKILL."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
