"""What the commands of the pages need, and which of them no test can run."""

# Commands of the shell that make what a page finds in its folder, which is also HOME. The programs of examples/ are there
# already, and examples/ and tests/ of the project.
PREPARED = {
    "docs/guide/check.md": "tsomon record -o run.tsomon -- ./bank_transfer; tsomon record -o pool.tsomon -- ./task_pool; "
                        "tsomon record -o fenced.tsomon -- ./task_pool fenced; tsomon generate --events 20000 -o long.std; cp tests/fuzz/corpus/perf/file.data perf.data",
    "docs/guide/dormant.md": "cp tests/guide/bank.cpp server.cpp",
    "docs/guide/elsewhere.md": "tsomon record -o run.tsomon -- ./bank_transfer; tsomon pack -o other.tsomon.pack run.tsomon",
    "docs/guide/explain.md": "tsomon record -o event_count.tsomon -- ./event_count",
    "docs/guide/record.md": "echo 'int f(); int main() { return f(); }' >a.cpp; echo 'int f() { return 0; }' >b.cpp; "
                         "echo >foo.c; cc -c foo.c; ar rc libfoo.a foo.o; tsomon-c++ -O1 tests/guide/bank.cpp -o bank",
    "docs/guide/report.md": "tsomon record -o pool.tsomon -- ./task_pool; mkdir -p src/pool",
    "docs/guide/run.md": "cp bank_transfer prog",
}

# Commands that are run before those in which the pattern is found.
BEFORE = {
    "docs/guide/report.md": {r"report run\.json$": "tsomon run --output json -- ./bank_transfer >run.json"},
    "docs/guide/which-property.md": {r"run\.tsomon +# (.+)$": r"tsomon record -o run.tsomon -- \1"},
}

# Words that stand for any of their kind.
REPLACED = {"PROGRAM": "./bank_transfer", "PROPERTY": "serializability"}

# Pages whose output is the same everywhere.
EXACT = {"docs/guide/ci.md", "docs/guide/known-findings.md", "docs/guide/linearizability.md"}

# How commands begin that are not run, and why. The jobs of ci.md for code hosts are no commands of a shell; what they call is
# the page's session.
LEFT_OUT = {
    "README.md": {
        "tools/": "installs packages, and builds",
    },
    "docs/guide/attach.md": {
        "tsomon attach": "the number of a running process, and the right to set probes; tests/attach has them",
    },
    "docs/guide/check.md": {
        "tsomon check --property consistency --order thread [": "a form with its alternatives; tests/cli/check_consistency.case",
    },
    "docs/guide/debugger.md": {
        "gdb ": "a session in a debugger, which asks for what comes next",
    },
    "docs/guide/dormant.md": {
        "TSOMON_OPTIONS=control=on ./server &": "a server that runs on; tests/slices has one that is watched",
        "tsomon record --pid $!": "likewise",
        "tsomon check slice.tsomon": "likewise",
        "tsomon run --pid $!": "likewise",
    },
    "docs/guide/elsewhere.md": {
        "tsomon check --sysroot /mnt/target": "the files of another machine; tests/recorded/elsewhere.case",
        "tsomon check --debug-paths ~/symbols": "likewise",
    },
    "docs/guide/embedding.md": {
        "c++ ": "an installed tsomon; tests/install has both",
        "cc ": "likewise",
    },
    "docs/guide/fleet.md": {
        "tsomon submit": "a server; tests/fleet has some",
        "tsomon worker": "likewise",
        "tsomon fleet": "likewise",
        "tsomon findings": "likewise",
    },
    "docs/guide/monitor.md": {
        "./bank_server &": "a server that runs on, and one that watches it; tests/service/check_canary does what the page says",
        "tsomon monitor": "likewise",
        "tsomon findings": "likewise",
        "tsomon status": "a monitor that runs; tests/service/check_observation has one",
        "tsomon top": "likewise",
        "curl ": "likewise",
    },
    "docs/guide/perf-and-pt.md": {
        "perf ": "perf, the right to set probes, and a processor with watchpoints or Intel PT; tests/perf has them",
        "address=": "likewise",
        "tsomon check perf.data": "likewise",
        "tsomon check --unit 'deposit*' perf.data": "likewise",
    },
    "docs/guide/tutorial.md": {
        "tools/quickstart": "installs packages, and builds",
    },
}
