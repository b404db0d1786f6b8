"""Text traces of plain accesses, locks, forks and joins, as RAPID writes them, and what can be said
about their reorderings without any code of the project's."""

import dataclasses
import re

LINE = re.compile(r"^(\w+)\|(\w+)\(([^)]*)\)\|(.*)$")


@dataclasses.dataclass(frozen=True)
class Event:
    thread: str
    kind: str  # r, w, acq, rel, fork, join
    what: str


class Trace:
    """The events of a text trace. `fork(122)` starts `T122`, as in RAPID's own."""

    def __init__(self, text):
        self.events = []
        for line in text.splitlines():
            if line:
                thread, kind, what = LINE.match(line).groups()[:3]
                if kind in ("fork", "join") and what.isdigit():
                    what = "T" + what
                self.events.append(Event(thread, kind, what))
        self.threads = {}
        self.place = []  # of an event in its thread
        self.accesses = {}  # by variable
        self.needs = {}  # known results of before()
        self.forks = {}
        self.source = {}  # of a read, the write that it sees
        writes = {}
        for number, event in enumerate(self.events):
            own = self.threads.setdefault(event.thread, [])
            self.place.append(len(own))
            own.append(number)
            if event.kind in "rw":
                self.accesses.setdefault(event.what, []).append(number)
            if event.kind == "r":
                self.source[number] = writes.get(event.what)
            elif event.kind == "w":
                writes[event.what] = number
            elif event.kind == "fork":
                self.forks[event.what] = number

    def text(self):
        """Each event at a line of its own, forks of threads that do nothing left out."""
        kept = self.events
        while True:
            threads = {event.thread for event in kept}
            fewer = [event for event in kept
                     if event.kind not in ("fork", "join") or event.what in threads]
            if len(fewer) == len(kept):
                return "".join(f"{event.thread}|{event.kind}({event.what})|{i}\n"
                               for i, event in enumerate(kept))
            kept = fewer

    def conflict(self, first, second):
        one, other = self.events[first], self.events[second]
        return (one.thread != other.thread and one.what == other.what and
                {one.kind, other.kind} in ({"w"}, {"r", "w"}))

    def whole(self, race):
        """The order of a race of `tsomon predict --output json`."""
        if race["witness"] is not None:
            return race["witness"]
        short = race["short_witness"]
        last = {self.events[number].thread: number for number in short["last"]}
        front = [number for number, event in enumerate(self.events)
                 if number <= last.get(event.thread, -1)]
        return front + short["tail"]

    def refuse(self, order, first, second):
        """Why this order does not show a race of the two, or None. All reads but these two have to
        see what they saw."""
        if sorted(order[-2:]) != sorted((first, second)) or not self.conflict(first, second):
            return "it does not end with two accesses in conflict"
        done = dict.fromkeys(self.threads, 0)
        writes, holders = {}, {}
        for number in order:
            event = self.events[number]
            if self.threads[event.thread][done[event.thread]] != number:
                return f"#{number} is not the next of its thread"
            if done[event.thread] == 0 and event.thread in self.forks:
                parent = self.forks[event.thread]
                if self.place[parent] >= done[self.events[parent].thread]:
                    return f"#{number} comes before the fork"
            if event.kind in ("acq", "rel"):  # a thread may acquire again what it holds
                held = holders.setdefault(event.what, [])
                if event.kind == "acq":
                    if held and held[0] != event.thread:
                        return f"#{number} acquires what another thread holds"
                    held.append(event.thread)
                elif not held or held.pop() != event.thread:
                    return f"#{number} releases what its thread does not hold"
            if event.kind == "join" and done.get(event.what, 0) < len(self.threads.get(event.what, [])):
                return f"#{number} comes before the end of the thread"
            if event.kind == "r" and number not in (first, second) and \
                    writes.get(event.what) != self.source[number]:
                return f"#{number} reads another write"
            if event.kind == "w":
                writes[event.what] = number
            done[event.thread] += 1
        return None

    def before(self, number):
        """What every reordering has before this event can be next: its thread so far, the writes that
        these reads see, forks, and the ends of joined threads; how much of each thread."""
        if number in self.needs:
            return self.needs[number]
        need, todo = {}, []
        self.needs[number] = need

        def add(event):
            thread = self.events[event].thread
            if self.place[event] >= need.get(thread, 0):
                todo.extend(self.threads[thread][need.get(thread, 0):self.place[event] + 1])
                need[thread] = self.place[event] + 1

        thread = self.events[number].thread
        if self.place[number]:
            add(self.threads[thread][self.place[number] - 1])
        elif thread in self.forks:
            add(self.forks[thread])
        while todo:
            event = self.events[todo[-1]]
            source = self.source.get(todo.pop())
            if source is not None:
                add(source)
            if event.thread in self.forks:
                add(self.forks[event.thread])
            if event.kind == "join" and event.what in self.threads:
                add(self.threads[event.what][-1])
        return need

    def held(self, thread, done):
        """The locks that a thread holds after so many events, each with how often."""
        held = {}
        for number in self.threads[thread][:done]:
            event = self.events[number]
            if event.kind in ("acq", "rel"):
                held[event.what] = held.get(event.what, 0) + (1 if event.kind == "acq" else -1)
        return {lock: depth for lock, depth in held.items() if depth}

    def candidates(self, second):
        """Earlier accesses in conflict with this one that neither a lock nor a fixed order excludes."""
        thread = self.events[second].thread
        locks = self.held(thread, self.place[second]).keys()
        before = self.before(second)
        for first in self.accesses[self.events[second].what]:
            if first >= second:
                break
            other = self.events[first].thread
            if self.conflict(first, second) and self.place[first] >= before.get(other, 0) and \
                    self.place[second] >= self.before(first).get(thread, 0) and \
                    not locks & self.held(other, self.place[first]).keys():
                yield first

    def racy(self, second, max_states):
        """An earlier access that can be next together with `second`, in any reordering whose reads
        see what they saw; None if there is none, False if there are too many states to say."""
        firsts = set(self.candidates(second))
        if not firsts:
            return None
        if len(self.events) > max_states ** 0.5:
            return False
        names = list(self.threads)
        variables = sorted({event.what for event in self.events if event.kind in "rw"})
        start = (tuple(0 for _ in names), tuple(None for _ in variables))
        seen, todo = {start}, [start]
        while todo:
            if len(seen) > max_states:
                return False
            done, writes = todo.pop()
            held = [self.held(name, done[i]) for i, name in enumerate(names)]
            ahead = []
            for i, name in enumerate(names):
                fork = self.forks.get(name)
                if done[i] < len(self.threads[name]) and (
                        done[i] or fork is None or
                        self.place[fork] < done[names.index(self.events[fork].thread)]):
                    ahead.append((i, self.threads[name][done[i]]))
            if any(number == second for _, number in ahead):
                for _, number in ahead:
                    if number in firsts:
                        return number
            for i, number in ahead:
                event, after = self.events[number], writes
                if number == second:
                    continue
                if event.kind == "acq" and any(
                        event.what in other for j, other in enumerate(held) if j != i):
                    continue
                if event.kind == "join" and \
                        done[names.index(event.what)] < len(self.threads[event.what]):
                    continue
                if event.kind in "rw":
                    variable = variables.index(event.what)
                    if event.kind == "r" and writes[variable] != self.source[number]:
                        continue
                    if event.kind == "w":
                        after = writes[:variable] + (number,) + writes[variable + 1:]
                state = (done[:i] + (done[i] + 1,) + done[i + 1:], after)
                if state not in seen:
                    seen.add(state)
                    todo.append(state)
        return None
