"""What services of the tests run: `job.py DOING …`; each line that it says is JSON."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def notify(text: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
        to.connect(os.environ["NOTIFY_SOCKET"])
        to.send(text)


def sleep() -> None:
    while True:
        time.sleep(3600)


def eat() -> None:
    """Take memory until something ends it."""
    taken = []
    while True:
        taken.append(bytearray(os.urandom(4096) * 1024))


def burn() -> None:
    """Use a processor."""
    while True:
        pass


def threads() -> None:
    """Start threads until it may not, say how many there are, and stay."""
    try:
        while True:
            threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    except RuntimeError:
        say(threads=threading.active_count())
    sleep()


def slow(seconds: str) -> None:
    """Take a while to be ready, and stay."""
    say(begun=True)
    time.sleep(float(seconds))
    say(ready=True)
    notify(b"READY=1")
    sleep()


def fail() -> None:
    """Never come up."""
    sys.exit(3)


def nodes(*paths: str) -> None:
    """Say which device nodes can be opened, at first and whenever it gets SIGHUP."""

    def look(*_: object) -> None:
        say(nodes={path: attempt(path) for path in paths})

    signal.signal(signal.SIGHUP, look)
    look()
    sleep()


def attempt(path: str) -> str:
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError as error:
        return f"{error.strerror}"
    return "open"


def train(seconds: str) -> None:
    """Write a checkpoint on SIGTERM, while its worker has to live on."""
    worker = subprocess.Popen([sys.executable, "-I", __file__, "worker"])

    def end(*_: object) -> None:
        time.sleep(float(seconds))
        say(checkpoint="written", worker="alive" if worker.poll() is None else "dead")
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    say(training=True)
    sleep()


def worker() -> None:
    signal.signal(signal.SIGTERM, lambda *_: say(worker="was told"))
    sleep()


def workers() -> None:
    """Start four workers, one of which takes memory until something ends it, the first time."""
    again = os.path.exists("again")
    with open("again", "w"):
        pass
    kinds = ["worker", "worker", "worker", "worker" if again else "eat"]
    started = [subprocess.Popen([sys.executable, "-I", __file__, kind]) for kind in kinds]
    say(workers=[one.pid for one in started], again=again)
    sleep()


def stubborn() -> None:
    """Never end by itself."""
    signal.signal(signal.SIGTERM, lambda *_: say(told=True))
    say(started=True)
    sleep()


def secret(name: str) -> None:
    path = f"{os.environ['CREDENTIALS_DIRECTORY']}/{name}"
    with open(path) as file:
        value = file.read()
    mode = os.stat(path).st_mode & 0o777
    say(secret=value, mode=mode, elsewhere=attempt("/etc/credentials/token"))
    sleep()


def tell(*words: str) -> None:
    """Say what it was given."""
    say(words=words, environment=dict(os.environ), directory=os.getcwd(), user=os.getuid())


def serve() -> None:
    """Answer each connection with its process; it listens where systemd says."""
    listening = socket.socket(fileno=3)
    ending: list[bool] = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(True))
    notify(b"READY=1")
    listening.settimeout(0.1)
    while not ending:
        try:
            connection, _ = listening.accept()
        except TimeoutError:
            continue
        with connection:
            connection.recv(100)
            connection.sendall(b"%d" % os.getpid())


globals()[sys.argv[1]](*sys.argv[2:])
