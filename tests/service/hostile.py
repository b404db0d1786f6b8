#!/usr/bin/env python3
"""A program that can be asked to be watched, and does as it likes with the file of its slice: hostile.py CAPTURE

Each time something else: no capture, a capture that is cut, shortened and extended while it is read, one that stays mapped to be
written, sizes and times that nobody can have measured, and answers that are none.
"""
import array
import mmap
import os
import random
import socket
import sys
import threading

capture = open(sys.argv[1], "rb").read()
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(f"\0tsomon/{os.getpid()}")
listener.listen(4)
print("listens", flush=True)
kept = []


def change(fd):
    """Until its file is sealed."""
    try:
        while True:
            os.ftruncate(fd, 0)
            os.ftruncate(fd, random.randrange(1 << 22))
            os.pwrite(fd, capture, 0)
    except OSError:
        os.close(fd)


def ended(more=""):
    return f"ended watched=20000 threads=2 cut=0 bytes={len(capture)}{more}".encode()


for turn in range(1 << 30):
    client, _ = listener.accept()
    _, control, _, _ = client.recvmsg(200_000, socket.CMSG_LEN(4))
    if not control:
        client.close()
        continue
    fd = array.array("i", control[0][2])[0]
    what = turn % 8
    os.pwrite(fd, capture, 0)
    said = [b"begun", ended()]
    if what == 0:
        os.pwrite(fd, b"\x1b]0;owned\x07 is no capture \xff", 0)
    elif what == 1:
        os.ftruncate(fd, random.randrange(len(capture)))
    elif what == 2:
        threading.Thread(target=change, args=(os.dup(fd),), daemon=True).start()
    elif what == 3:
        kept[:] = [mmap.mmap(fd, len(capture))]
        kept[0][0:4] = b"\0\0\0\0"
    elif what == 4:
        said = [b"begun", b"ended watched=18446744073709551615 threads=18446744073709551615 cut=9999999999999999999 bytes=-1"]
    elif what == 5:
        said = [b"armed", b"begun"]  # and no end: it asked for none of the first
    elif what == 6:
        said = [b"error \x1b[2J\nbank: new finding"]
    elif what == 7:
        noise = bytearray(capture)
        for _ in range(64):
            noise[random.randrange(len(noise))] = random.randrange(256)
        os.pwrite(fd, noise, 0)
    try:
        for each in said:
            client.send(each)
    except OSError:
        pass
    os.close(fd)
    client.close()
