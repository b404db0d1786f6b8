# Inputs that are worst for something: a table of generators, one a line in CASES, each of which yields lines.
# N is the number of lines or so; a line has some ten bytes. Text traces, unless the name begins with that of another format
# (axe_, litmus_, and for histories etcd_, edn_, hist_, log_); a recording_ is made by a program.
import itertools

# What most commands do with a trace.
CHECKS = ("check", "check --property robustness", "check --property sc-serializability", "check --order thread")
ALL = CHECKS + ("predict --max-work 1000000000 > report", "explain --max-work 1000000000", "script", "report")

# Thousands of predictions, each with its witness, take more as JSON than the bound: the report is not counted.
ALL_BUT_PREDICT = tuple(command for command in ALL if not command.startswith("predict"))


def unit(thread, *operations, label=""):
    yield f"{thread}|begin({label})|" if label else f"{thread}|begin|"
    for operation in operations:
        yield f"{thread}|{operation}|"
    yield f"{thread}|end|"


def threads(n):
    for i in range(n // 4):
        yield from unit(f"T{i}", "r(x)", "w(x)")


def threads_at_once(n):
    for step in ("begin", "r(x)", "w(x)", "end"):
        for i in range(n // 4):
            yield f"T{i}|{step}|"


def threads_forked(n):
    for i in range(1, n // 4):
        yield f"T0|fork(T{i})|"
    for i in range(1, n // 4):
        yield f"T{i}|r(x{i % 7})|"
        yield f"T{i}|w(x{i % 5})|"
    for i in range(1, n // 4):
        yield f"T0|join(T{i})|"


def threads_in_a_chain(n):
    for i in range(n // 4):
        yield f"T{i}|w(x)|"
        yield f"T{i}|fork(T{i + 1})|"
        yield from () if i % 3 else (f"T{i}|r(y)|",)


def threads_with_locations(n):
    count = int((n / 2) ** 0.5)
    for i in range(count):
        for j in range(count):
            yield f"T{j}|r(x{i})|"
            yield f"T{j}|w(x{(i + j) % count})|"


def locks_nested(n):
    for thread in ("T0", "T1"):
        for i in range(n // 4):
            yield f"{thread}|acq(l{i})|"
        yield f"{thread}|w(x)|"
        for i in reversed(range(n // 4)):
            yield f"{thread}|rel(l{i})|"


def locks_held_with_accesses(n):
    for thread in ("T0", "T1"):
        for i in range(n // 6):
            yield f"{thread}|acq(l{i})|"
            yield f"{thread}|w(x{i})|"
        for i in range(n // 6):
            yield f"{thread}|rel(l{i})|"


def locks_of_threads(n):
    count = int((n / 3) ** 0.5)
    for i in range(count):
        for j in range(count):
            yield f"T{j}|acq(l{(i + j) % count})|"
            yield f"T{j}|w(x{i})|"
            yield f"T{j}|rel(l{(i + j) % count})|"


def locks_many(n):
    for i in range(n // 6):
        for thread in ("T0", "T1"):
            yield f"{thread}|acq(l{i})|"
            yield f"{thread}|w(x{i})|"
            yield f"{thread}|rel(l{i})|"


def locks_in_both_orders(n):
    for i in range(n // 8):
        first, second = f"l{i}", f"l{(i * 7919 + 1) % (n // 8)}x"
        yield from (f"T0|acq({first})|", f"T0|acq({second})|", f"T0|rel({second})|", f"T0|rel({first})|")
        yield from (f"T1|acq({second})|", f"T1|acq({first})|", f"T1|rel({first})|", f"T1|rel({second})|")


def waiting_in_a_circle(n):
    count = n // 3
    for i in range(count):
        yield f"T{i}|acq(l{i})|"
        yield f"T{i}|w(x)|"
    for i in range(count):
        yield f"T{i}|request(l{(i + 1) % count})|"


def units_many(n):
    for i in range(n // 8):
        yield from unit("T0", "r(x)", "w(x)", label=f"a{i}")
        yield from unit("T1", "r(x)", "w(x)", label=f"b{i}")


def units_overlapping(n):
    for i in range(n // 8):
        for pair in zip(unit("T0", "r(x)", "w(x)"), unit("T1", "r(x)", "w(x)")):
            yield from pair


def units_of_many_locations(n):
    for i in range(n // 8):
        for pair in zip(unit("T0", f"r(x{i})", f"w(y{i})"), unit("T1", f"r(y{i})", f"w(x{i})")):
            yield from pair


def unit_of_everything(n):
    yield "T0|begin|"
    yield "T1|begin|"
    for i in range(n // 2):
        yield f"T0|w(x{i})|"
        yield f"T1|r(x{i})|"
    yield "T0|end|"
    yield "T1|end|"


def units_nested(n):
    for thread in ("T0", "T1"):
        for i in range(n // 8):
            yield f"{thread}|begin(m{i})|"
            yield f"{thread}|w(x)|"
    for thread in ("T0", "T1"):
        for i in range(n // 8):
            yield f"{thread}|end|"
            yield f"{thread}|r(x)|"


def units_cancelled(n):
    for i in range(n // 10):
        for thread in ("T0", "T1"):
            yield from (f"{thread}|begin|", f"{thread}|begin|", f"{thread}|w(x)|", f"{thread}|cancel|", f"{thread}|end|")


def units_open_then_cancelled(n):
    for i in range(n // 3):
        yield f"T0|begin|"
        yield f"T0|w(x{i % 10})|"
    for i in range(n // 3):
        yield "T0|cancel|"
    yield "T1|w(x1)|"


def stores_never_drained(n):
    for i in range(n // 2):
        yield f"T0|w(x{i % 1000})|"
        yield f"T1|r(x{(i * 7) % 1000})|"


def store_buffering_everywhere(n):
    for i in range(n // 4):
        yield f"T{i % 10}|w(x{i % 97})|"
        yield f"T{(i + 3) % 10}|r(x{i % 89})|"
        yield f"T{(i + 5) % 10}|r(x{i % 83})|"
        yield f"T{(i + 7) % 10}|w(x{i % 79})|"


def readers_of_one(n):
    yield "T|w(x)|"
    for i in range(n // 2):
        yield f"T{i}|r(x)|"
        yield f"T{i}|w(x)|"


def values(n):
    for i in range(n // 3):
        yield f"T0|w(x={i})|"
        yield f"T1|r(x={i})|"
        yield f"T2|rmw(y={i},{i + 1})|"


def values_at_once(n):
    for i in range(n // 2):
        yield f"T{i}|w(x={i})|"
    for i in range(n // 2):
        yield f"T{i}|r(x={(i * 7919) % (n // 2)})|"


def branches(n):
    for i in range(n // 4):
        yield from (f"T0|w(x={i})|", f"T1|r(x={i})|", "T1|branch|", f"T1|w(y{i % 100})|")


def waits(n):
    for i in range(n // 8):
        yield from ("T0|acq(l)|", "T0|rel(l)|", "T0|wait(c)|", "T1|acq(l)|", "T1|notify(c)|", "T1|rel(l)|", "T0|acq(l)|", "T0|rel(l)|")


def channels(n):
    count = int((n / 2) ** 0.5)
    for i in range(count):
        for j in range(count):
            yield f"T{j}|send(c{i})|"
            yield f"T{(j + i) % count}|receive(c{i})|"


def semaphores(n):
    yield "T0|count(s=0)|"
    for i in range(n // 2):
        yield f"T{i % 500}|post(s)|"
    for i in range(n // 2):
        yield f"T{(i * 7) % 500}|take(s)|"


def blocks(n):
    for i in range(n // 4):
        yield f"T0|alloc(0x{(1 << 32) + 64 * (i % 1000):x}=64)|"
        yield f"T1|w(0x{(1 << 32) + 64 * (i % 1000):x}+8)|"
        yield f"T0|free(0x{(1 << 32) + 64 * (i % 1000):x}=64)|"
        yield f"T1|r(0x{(1 << 32) + 64 * (i % 1000) + 8:x}+8)|"


def blocks_in_blocks(n):
    for i in range(n // 2):
        yield f"T0|alloc(0x{(1 << 32) + i:x}={(1 << 24) - 2 * i if 2 * i < 1 << 24 else 1})|"
        yield f"T1|w(0x{(1 << 32) + i * 64:x}+8)|"


def objects(n):
    for i in range(n // 3):
        yield f"T0|alloc(0x{(1 << 32) + 64 * i:x}+64)|"
        yield f"T{i % 3}|w(0x{(1 << 32) + 64 * i:x}+8)|"
        yield f"T{(i + 1) % 3}|r(0x{(1 << 32) + 64 * i + 8:x}+8)|"


def sets_many(n):
    for i in range(n // 6):
        yield f"-|set(s{i};x{i},y{i},x{i + 1})|"
    for i in range(n // 6):
        yield from (f"T{i % 2}|begin(m;s{i})|", f"T{i % 2}|r(x{i})|", f"T{1 - i % 2}|w(x{i})|", f"T{i % 2}|w(y{i})|", f"T{i % 2}|end|")


def sets_of_one_unit(n):
    for i in range(n // 4):
        yield f"-|set(s{i};x{i % 100})|"
    every = ",".join(f"s{i}" for i in range(n // 4))
    for thread in ("T0", "T1"):
        yield f"{thread}|begin(m;{every})|"
        for i in range(n // 4):
            yield f"{thread}|w(x{i % 100})|"
        yield f"{thread}|end|"


def sets_that_overlap(n):
    count = int((n / 2) ** 0.5)
    every = ",".join(f"x{i}" for i in range(count))
    for i in range(count // 2):
        yield f"-|set(s{i};{every})|"
    for i in range(n // 4):
        yield from (f"T{i % 2}|w(x{i % count})|", f"T{1 - i % 2}|r(x{i % count})|")


def set_of_ranges(n):
    yield "-|set(s;" + ",".join(f"0x{(1 << 32) + (i << 20):x}+16777215" for i in range(n // 20)) + ")|"
    for i in range(n // 4):
        yield f"T{i % 2}|w(0x{(1 << 32) + i * 4096:x}+8)|"
        yield f"T{1 - i % 2}|r(0x{(1 << 32) + i * 4096:x}+8)|"


WIDE = (1 << 24) - 1


def ranges_shifted(n):
    for i in range(n // 3):
        yield f"T{i % 2}|{'rw'[i % 3 % 2]}(0x{(1 << 32) + i:x}+{WIDE})|"


def ranges_nested(n):
    for i in range(n // 3):
        yield f"T{i % 2}|{'rw'[i % 3 % 2]}(0x{(1 << 32) + i:x}+{WIDE - 2 * i})|"


def ranges_shifted_of_threads(n):
    for i in range(n // 3):
        yield f"T{i % 1000}|{'rw'[i % 3 % 2]}(0x{(1 << 32) + (i * 7919) % (1 << 24):x}+{WIDE})|"


def bytes_below_a_range(n):
    for i in range(n // 4):
        yield f"T0|w(0x{(1 << 32) + (i * 4099) % (1 << 24):x}+1)|"
        if i % 16 == 0:
            yield f"T1|r(0x{1 << 32:x}+{WIDE})|"


def intervals_all_at_once(n):
    for i in range(n // 8):
        for pair in zip(unit(f"T{i % 50}", f"r(x{i % 9})", f"w(x{i % 7})"), unit(f"T{50 + i % 50}", f"w(x{i % 5})")):
            yield from (f"{line}|0..1000000" for line in pair)


def intervals_of_threads(n):
    for i in range(n // 4):
        yield from (f"{line}|0..1000000" for line in unit(f"T{i}", "r(x)", "w(x)"))


def intervals_nested(n):
    for i in range(n // 2):
        yield f"T{i}|{'rw'[i % 2]}(x{i % 50})||{i}..{2 * n - i}"


def intervals_of_stores(n):
    for i in range(n // 2):
        yield f"T0|w(x{i % 50})||0..1000000"
        yield f"T1|r(x{i % 50})||0..1000000"


def initial_values(n):
    for i in range(n // 2):
        yield f"-|init(x{i}={i})|"
    for i in range(n // 4):
        yield from (f"T0|w(x{i}={i + 1})|", f"T1|r(x{i}={i})|")


# Two units of a cycle, and names as long as the rest of the input.
def long_names(n, letter="n", count=20):
    name = letter * (n * 10 // count)
    for i in range(count // 4):
        for pair in zip(unit(f"T0", f"r({name}{i})", f"w({name}{i})", label=f"l{name}{i}"),
                        unit(f"T1", f"r({name}{i})", f"w({name}{i})", label=f"l{name}{i}")):
            yield from pair


# One name of each kind, which all events bear.
def one_long_name(n, letter="n"):
    name = letter * (n * 3)
    yield from (f"{name}0|fork({name}1)|{name}", f"{name}0|fork({name}2)|{name}")
    yield from (f"{name}0|begin({name})|", f"{name}1|begin|")
    # A thread, place or location is written once; short lines refer to it as little as the format allows.
    for i in range(4):
        for thread in ("T0", "T1"):
            yield from unit(thread, f"r(x)", f"w(x)", label="m")


def control_characters(n):
    return long_names(n, letter="\x01")


def broken_letters(n):
    return long_names(n, letter="\udcff")


def calls_pending(n):
    for i in range(n // 3):
        yield f"T{i}|call(write,{i})|"
    for i in range(n // 3):
        yield f"T{i}|ret()|"
    for i in range(n // 6):
        yield from (f"R|call(read)|", f"R|ret({(i * 7919) % (n // 3)})|")


def calls_of_objects(n):
    for i in range(n // 4):
        yield from (f"T0|call(o{i}.write,1)|", f"T1|call(o{i}.read)|", "T0|ret()|", "T1|ret(1)|")


def axe_locations(n):
    for i in range(n):
        yield f"{i % 50}: M[{i}] := {i + 1}"


def axe_threads(n):
    for i in range(n // 2):
        yield f"{i}: M[{i % 3}] := {i + 1}"
        yield f"{i}: M[{(i + 1) % 3}] == {i // 2 + 1}"


def axe_one_location(n):
    for i in range(n):
        yield f"{i % 4}: v0 := {i % 7}" if i % 2 else f"{i % 4}: v0 == {i % 7}"


def axe_tests(n):
    for i in range(n // 5):
        yield from ("0: v0 := 1", "0: v1 == 0", "1: v1 := 1", "1: v0 == 0", "check")


def axe_locked(n):
    for i in range(n):
        yield "%d: { v0 == %d; v0 := %d }" % (i % 3, i, i + 1)


def litmus_rows(n):
    yield from ("X86 rows", "{ }", " P0 | P1 ;")
    for i in range(n):
        yield f" MOV [x],${i} | MOV [y],${i} ;"
    yield "exists (x=1)"


def litmus_threads(n):
    count = 64
    yield from ("X86 threads", "{ }", "|".join(f" P{i} " for i in range(count)) + ";")
    for row in range(n // count // 4):
        yield "|".join(f" MOV [x{i}],${row + 1} " for i in range(count)) + ";"
        yield "|".join(f" MOV EAX,[x{(i + 1) % count}] " for i in range(count)) + ";"
    yield "exists (" + " /\\ ".join(f"{i}:EAX=0" for i in range(count)) + ")"


def litmus_locations(n):
    yield "X86 locations"
    yield "{ " + " ".join(f"x{i}=1;" for i in range(n)) + " }"
    yield from (" P0 ;", " MOV EAX,[x0] ;")
    yield "locations [" + " ".join(f"x{i};" for i in range(n)) + "]"
    yield "exists (0:EAX=1)"


def litmus_condition(n):
    yield from ("X86 condition", "{ }", " P0 ;", " MOV [x],$1 ;")
    yield "exists (" + " \\/ ".join(f"~(x={i} /\\ y={i})" for i in range(n)) + ")"


def hist_pending(n):
    yield "# @object atomic-stack"
    for i in range(n):
        yield f"[{i}] call push({i})"


def hist_overlapping(n):
    yield "# @object atomic-queue"
    for i in range(n // 4):
        yield f"[{i}] call enq({i})"
    for i in range(n // 4):
        yield f"[{i}] return"
    for i in range(n // 4):
        yield f"[{i}] call deq({i * 7919 % (n // 4)})"
    for i in range(n // 4):
        yield f"[{i}] return"


def log_at_once(n):
    yield "# queue"
    for i in range(n // 2):
        yield f"enqueue {i} {i} {n + i}"
    for i in range(n // 2):
        yield f"dequeue {i} {n // 2 + i} {2 * n + i}"


def log_sets(n):
    yield "# set"
    for i in range(n):
        yield f"{'insert' if i % 2 else 'contains'} {i % 5} 1 {i} {i + 40}"


def etcd_register(n):
    for i in range(n // 2):
        yield f"INFO  jepsen.util - {i % 30} :invoke :write {i}"
    for i in range(n // 4):
        yield f"INFO  jepsen.util - {i % 30} :info :write {i}"


def edn_keys(n):
    for i in range(n // 2):
        yield "{:process %d, :type :invoke, :f :put, :key %d, :value %d}" % (i % 9, i, i)
        yield "{:process %d, :type :ok, :f :put, :key %d, :value %d}" % (i % 9, i, i)


def edn_nested(n):
    yield "[" * n
    yield "{" * n


# Two threads do the same all the time: a byte of the recording stands for thousands of accesses.
def recording_loops(n):
    return ("worst_loops", str(n))


def recording_units(n):
    return ("counters", str(n))


CONSISTENCY = ("check --property consistency --order thread",)
SETS = ("check --property atomic-sets", "check --property atomic-sets --order thread")
AXE = ("check --property consistency --order thread",)
LITMUS = ("litmus --max-states 100000",)
HISTORY = ("check --property linearizability",)
RECORDING = CHECKS + ("predict --max-work 1000000000",)
LINEAR = ("check --property linearizability --object register",)

# name: generator, number of lines, commands
CASES = {
    generator.__name__: (generator, n, commands)
    for generator, n, commands in (
        (threads, 80000, ALL),
        (threads_at_once, 80000, ALL),
        (threads_forked, 80000, ALL),
        (threads_in_a_chain, 80000, ALL),
        (threads_with_locations, 80000, ALL + CONSISTENCY),
        (locks_nested, 80000, ALL),
        (locks_held_with_accesses, 60000, ALL),
        (locks_of_threads, 80000, ALL),
        (locks_many, 80000, ALL),
        (locks_in_both_orders, 80000, ALL),
        (waiting_in_a_circle, 60000, ALL),
        (units_many, 80000, ALL),
        (units_overlapping, 80000, ALL),
        (units_of_many_locations, 80000, ALL),
        (unit_of_everything, 80000, ALL),
        (units_nested, 80000, ALL),
        (units_cancelled, 80000, ALL),
        (units_open_then_cancelled, 80000, ALL),
        (stores_never_drained, 80000, ALL + CONSISTENCY),
        (store_buffering_everywhere, 80000, ALL),
        (readers_of_one, 80000, ALL),
        (values, 80000, ALL + CONSISTENCY),
        (values_at_once, 50000, ALL + CONSISTENCY),
        (branches, 80000, ALL + CONSISTENCY),
        (waits, 80000, ALL),
        (channels, 80000, ALL),
        (semaphores, 80000, ALL),
        (blocks, 80000, ALL),
        (blocks_in_blocks, 80000, ALL),
        (objects, 80000, ALL + SETS),
        (sets_many, 80000, ALL + SETS),
        (sets_of_one_unit, 80000, ALL + SETS),
        (sets_that_overlap, 80000, ALL + SETS),
        (set_of_ranges, 30000, ALL + SETS),
        (ranges_shifted, 80000, ALL),
        (ranges_nested, 80000, ALL),
        (ranges_shifted_of_threads, 80000, ALL),
        (bytes_below_a_range, 80000, ALL),
        (intervals_all_at_once, 50000, ALL_BUT_PREDICT),
        (intervals_of_threads, 50000, ALL),
        (intervals_nested, 50000, ALL),
        (intervals_of_stores, 50000, ALL),
        (initial_values, 80000, ALL + CONSISTENCY),
        (long_names, 200000, ALL),
        (control_characters, 200000, ALL),
        (broken_letters, 200000, ALL),
        (one_long_name, 200000, ALL),
        (calls_pending, 30000, LINEAR + ("check", "predict --max-work 1000000000")),
        (calls_of_objects, 80000, LINEAR + ("check", "predict --max-work 1000000000")),
        (axe_locations, 80000, AXE),
        (axe_threads, 80000, AXE),
        (axe_one_location, 80000, AXE),
        (axe_tests, 80000, AXE),
        (axe_locked, 50000, AXE),
        (litmus_rows, 40000, LITMUS),
        (litmus_threads, 80000, LITMUS),
        (litmus_locations, 80000, LITMUS),
        (litmus_condition, 60000, LITMUS),
        (hist_pending, 80000, HISTORY),
        (hist_overlapping, 80000, HISTORY),
        (log_at_once, 60000, HISTORY),
        (log_sets, 60000, HISTORY),
        (etcd_register, 40000, HISTORY),
        (edn_keys, 40000, HISTORY),
        (edn_nested, 400000, HISTORY),
        (recording_loops, 20000000, RECORDING),
        (recording_units, 500000, RECORDING),
    )
}


def write(name, path):
    generator, n, _ = CASES[name]
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        lines = generator(n)
        while batch := list(itertools.islice(lines, 10000)):
            file.write("\n".join(batch) + "\n")
