# For gdb: stops a replay of `tsomon explore` before every step and every commit (docs/guide/debugger.md).
#
#   gdb -x steps.py --args tsomon explore --replay SCHEDULE -- PROGRAM
#
# `run` comes to the first step, `continue` to the next. The frame is the program's, not the C++ library's.
import os

import gdb

for setting in ("breakpoint pending on", "follow-fork-mode child", "print inferior-events off", "print thread-events off"):
    gdb.execute("set " + setting)


def is_own(line):
    if line.symtab is None:
        return False
    file = line.symtab.fullname()
    return os.path.exists(file) and not file.startswith("/usr/")


def select():
    """The program's own frame."""
    frame = gdb.newest_frame()
    while frame is not None and not is_own(frame.find_sal()):
        frame = frame.older()
    if frame is not None:
        frame.select()
    return frame


def place(pc):
    """A plain store is a step when its thread has gone on: its line is that of `pc`, not that of the frame."""
    frame = select()
    line = gdb.find_pc_line(pc - 1) if pc != 0 else None
    if line is None or not is_own(line):
        line = frame.find_sal() if frame is not None else None
    if line is None:
        return "begins" if pc == 0 else hex(pc)
    text = gdb.execute("list %s:%d,%d" % (line.symtab.filename, line.line, line.line), to_string=True)
    return "%s:%d  %s" % (os.path.basename(line.symtab.filename), line.line, text.split("\t", 1)[-1].strip())


def number(register):
    return int(gdb.parse_and_eval("(unsigned long)" + register))


class Step(gdb.Breakpoint):
    def stop(self):
        print("T%d  %s" % (number("$rdi"), place(number("$rsi"))))
        return True


class Commit(gdb.Breakpoint):
    def stop(self):
        address, size, value = number("$rsi"), number("$rdx"), number("$rcx")
        name = gdb.execute("info symbol %d" % address, to_string=True).split(" in section")[0].strip().replace("(anonymous namespace)::", "")
        print("T%d  commits %s (%d bytes at %#x) := %d" % (number("$rdi"), name, size, address, value & (1 << 8 * size) - 1))
        return True


for breakpoint in (Step("tsomon_explore_step"), Commit("tsomon_explore_commit")):
    breakpoint.silent = True
    breakpoint.commands = "python select()"
