# SPDX-License-Identifier: Apache-2.0
"""ready_tool.py SCRIPT MODULE: imports MODULE, then runs SCRIPT in a fork for each request on standard input, a socket.

    it says     ready VERSION
    request     LENGTH, a line; then so many bytes: a log file, a folder, and the arguments, each with a NUL behind it
    answer      started PROCESS, then ended STATUS (of waitpid), a line each

It ends when the socket does, with what it runs then, or when nobody asked for five minutes.
"""
import os
import sys

script, module = sys.argv[1:]
if sys.path[:1] == [""]:  # of -c: a script finds what lies next to it, not in the folder where it is called
    sys.path[0] = os.path.dirname(script)

import ctypes  # noqa: E402
import importlib  # noqa: E402
import runpy  # noqa: E402
import select  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import traceback  # noqa: E402

LONGEST_WITHOUT_CALLS = 300  # seconds


def receive(channel, size):
    parts = b""
    while len(parts) < size:
        part = channel.recv(size - len(parts))
        if not part:
            os._exit(0)
        parts += part
    return parts


def receive_line(channel):
    line = b""
    while not line.endswith(b"\n"):
        line += receive(channel, 1)
    return line


def run(log, folder, arguments):
    """The tool, in a process that is all its own."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with its parent
    signal.signal(signal.SIGINT, signal.default_int_handler)
    words = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (words, 1), (words, 2)):
        os.dup2(source, target)
    code = 1
    try:
        os.chdir(folder)
        sys.argv = [script, *arguments]
        runpy.run_path(script, run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if code and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code & 255)  # to end as Python does takes longer than the tool


def serve(channel, version):
    channel.sendall(f"ready {version}\n".encode())
    while select.select([channel], [], [], LONGEST_WITHOUT_CALLS)[0]:
        request = receive(channel, int(receive_line(channel)))
        log, folder, *arguments = (os.fsdecode(word) for word in request.split(b"\0")[:-1])
        ended, alive = os.pipe()  # nobody but the tool holds `alive`
        tool = os.fork()
        if tool == 0:
            os.close(ended)
            run(log, folder, arguments)
        os.close(alive)
        channel.sendall(b"started %d\n" % tool)
        if ended not in select.select([channel, ended], [], [])[0]:  # who asked is gone
            os.kill(tool, signal.SIGKILL)
        _, status = os.waitpid(tool, 0)
        os.close(ended)
        channel.sendall(b"ended %d\n" % status)


signal.signal(signal.SIGINT, signal.SIG_IGN)  # at a terminal it is meant for who started this
serve(socket.socket(fileno=os.dup(0)), getattr(importlib.import_module(module), "__version__", ""))
