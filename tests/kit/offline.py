"""offline.py COMMAND ...: runs it where there is no network but the machine's own 127.0.0.1."""

import fcntl
import os
import socket
import struct
import sys

IFF_UP_AND_RUNNING = 0x41
SIOCSIFFLAGS = 0x8914


def main() -> None:
    os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        loopback = struct.pack("16sh", b"lo", IFF_UP_AND_RUNNING)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, loopback)
    os.execvp(sys.argv[1], sys.argv[1:])


main()
