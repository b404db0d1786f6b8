"""The programs of tests/bench/programs/run: how each is built, run and looked after.

`archive` is the source package; `units` names the functions that are units of work. `chosen` and
`annotations` say what is watched where only declared data is (accesses=sets): globals by name, and
lines that are added to the sources, each behind another one; `files` or `functions`, those that
access it (-ftsomon-files, -ftsomon-functions). A run gives wall time and processor
time in seconds; what it put out is compared with what is right, outside the time taken. All take
about a second or more without instrumentation: the start of a process counts for little then, and
so does the luck of threads that meet at a lock.
"""
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

HEADER = "#include <tsomon.h>\n"


def command(*words, **rest):
    result = subprocess.run([str(word) for word in words], capture_output=True, **rest)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}:\n{result.stdout[-2000:].decode()}"
                 f"{result.stderr[-2000:].decode()}")
    return result.stdout


def configure(folder, *options, c, cpp=None, flags="-O2 -g"):
    """./configure for these compilers."""
    compilers = {"CC": str(c), "CFLAGS": flags}
    if cpp:
        compilers |= {"CXX": str(cpp), "CXXFLAGS": flags}
    command("./configure", *options, cwd=folder, env={**os.environ, **compilers})


@contextlib.contextmanager
def beside(process):
    """While the body runs."""
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_for(port):
    """Until somebody listens."""
    for _ in range(400):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)


def read(url, proxy=None):
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({"http": proxy} if proxy else {}))
    with opener.open(url, timeout=10) as answer:
        return answer.read()


def declared(name, what, size):
    return f'TSOMON_ATOMIC_SET("{name}", {what}, {size});\n'


class Program:
    """`start(program, way, *words)` of the bench runs it; `work` is the bench's folder."""
    needed = []
    chosen = ""
    files = ""
    functions = ""
    annotations = {}

    def __init__(self, bench):
        self.bench = bench
        self.work = bench.work

    def big_file(self, size):
        path = self.work / f"big-{size}"
        if not path.exists():
            with open(path, "wb") as out:
                for binary in sorted(pathlib.Path("/usr/bin").iterdir()):
                    if binary.is_file() and out.tell() < size:
                        out.write(binary.read_bytes()[:size - out.tell()])
        return path

    def tree(self):
        """The sources of all programs, and a large file."""
        tree = self.work / "tree"
        if not tree.exists():
            tree.mkdir()
            for archive in sorted(self.work.glob("*.orig.tar.*")):
                command("tar", "xf", archive, "-C", tree)
            os.link(self.big_file(40_000_000), tree / "big")
        return tree

    def timed(self, way, *words, **environment):
        """To its end."""
        self.bench.build(self, way)
        before, begin = self.bench.processor_time(), time.monotonic()
        self.bench.wait(self.bench.start(self, way, *words, **environment), begin)
        return time.monotonic() - begin, self.bench.processor_time() - before

    def expect(self, way, right):
        if not right:
            sys.exit(f"{self.name}, {way}: the output is wrong")


class Server(Program):
    """Wall time is that of `work`, its client."""
    def begin(self, way, port, *words):
        process = self.bench.start(self, way, *words)
        wait_for(port)
        return process

    def serve(self, way, port, work, *words):
        process = self.begin(way, port, *words)
        begin = time.monotonic()
        work()
        wall = time.monotonic() - begin
        right = self.answers(port)
        before = self.bench.processor_time()
        process.send_signal(signal.SIGTERM)
        self.bench.wait(process, begin)
        self.expect(way, right)
        return wall, self.bench.processor_time() - before


class Pbzip2(Program):
    """Compresses 40 MB with two threads; the work is done in libbz2, which is not instrumented."""
    name, archive, binary = "pbzip2", "pbzip2", "pbzip2"
    needed = ["libbz2-dev", "bzip2"]
    files = "pbzip2.cpp"
    units = "unit=*queue::*:unit=sync*"
    annotations = {"pbzip2.cpp": [
        ('#include "pbzip2.h"\n', HEADER),
        ("\tq->qData = new(std::nothrow) queue::ElementTypePtr[queueSize];\n",
         declared("queue", "q", "sizeof *q") +
         declared("queue", "q->qData", "queueSize * sizeof q->qData[0]"))]}

    @staticmethod
    def build(folder, _, cpp):
        command("make", f"CXX={cpp}", "CXXFLAGS=-O2 -g -std=c++11 -pthread "
                "-D_POSIX_PTHREAD_SEMANTICS -DUSE_STACKSIZE_CUSTOMIZATION "
                "-Wno-literal-suffix -Wno-write-strings", "pbzip2", cwd=folder)

    def run(self, way):
        big = self.big_file(40_000_000)
        packed = pathlib.Path(f"{big}.bz2")
        packed.unlink(missing_ok=True)
        times = self.timed(way, "-kfp2", big)
        self.expect(way, command("bzip2", "-dc", packed) == big.read_bytes())
        return times


class Lbzip2(Program):
    """Compresses 60 MB in small blocks with two threads; the compressor is its own, so every access
    of the computation is instrumented, but where data is chosen."""
    name, archive, binary = "lbzip2", "lbzip2", "src/lbzip2"
    needed = ["bzip2"]
    files = "process.c:compress.c:expand.c"
    units = ":".join(f"unit={name}" for name in (
        "sched_lock", "sched_unlock", "select_task", "source_release_buffer", "sink_write_buffer",
        "can_*", "on_input_avail", "on_write_complete"))
    chosen = ":".join(f"set={name}" for name in (
        "coll_q", "trans_q", "reord_q", "output_q", "order", "next_id", "unfinished_work",
        "collect_token", "eof", "finish", "request_close", "work_units", "in_slots", "out_slots",
        "next_task"))

    @staticmethod
    def build(folder, c, _):
        # Its copy of gnulib does not know today's C library by name.
        flags = "CPPFLAGS=-D_IO_ftrylockfile -D_IO_IN_BACKUP=0x100"
        configure(folder, c=c)
        command("make", "-C", "lib", flags, cwd=folder)
        command("make", flags, cwd=folder)

    def run(self, way):
        big = self.big_file(60_000_000)
        packed = pathlib.Path(f"{big}.bz2")
        packed.unlink(missing_ok=True)
        times = self.timed(way, "-1", "-n", 2, "-kf", big)
        self.expect(way, command("bzip2", "-dc", packed) == big.read_bytes())
        return times


class Mksquashfs(Program):
    """Packs the source trees of all these programs and a large file: threads that read, compress
    (in zlib, which is not instrumented) and write, with queues and caches between them."""
    name, archive, binary = "mksquashfs", "squashfs-tools", "squashfs-tools/mksquashfs"
    needed = ["zlib1g-dev"]
    files = "caches-queues-lists.*"
    units = ":".join(f"unit={name}" for name in (
        "queue_*", "seq_queue_*", "cache_*", "_cache_get", "*_fragment", "dupl*"))
    annotations = {"squashfs-tools/caches-queues-lists.c": [
        ('#include "caches-queues-lists.h"\n', HEADER),
        ("\tqueue->readp = queue->writep = 0;\n",
         "\t" + declared("queue", "queue", "sizeof *queue") +
         "\t" + declared("queue", "queue->data", "sizeof(void *) * (size + 1)")),
        ("\tmemset(queue, 0, sizeof(struct seq_queue));\n",
         "\t" + declared("seq_queue", "queue", "sizeof *queue")),
        ("\tcache->first_freelist = first_freelist;\n",
         "\t" + declared("cache", "cache", "sizeof *cache"))]}

    @staticmethod
    def build(folder, c, _):
        command("make", f"CC={c}", "XATTR_SUPPORT=0", "EXTRA_CFLAGS=-O2 -g", "mksquashfs",
                "unsquashfs", cwd=folder / "squashfs-tools")

    def run(self, way):
        tree = self.tree()
        image = self.work / "tree.squashfs"
        image.unlink(missing_ok=True)
        times = self.timed(way, tree, image, "-processors", 2, "-noappend", "-no-progress")
        unpacked = self.work / "unpacked"
        command("rm", "-rf", unpacked)
        command(self.bench.build(self, "native").parent / "unsquashfs", "-n", "-d", unpacked, image)
        command("diff", "-r", "--no-dereference", tree, unpacked)
        command("rm", "-rf", unpacked)
        return times


class Kyotocabinet(Program):
    """Its own test of the hash database in memory: two threads do 400,000 operations of all kinds
    each on shared records, and compare what they find."""
    name, archive, binary = "kyotocabinet", "kyotocabinet", "kccachetest"
    needed = ["zlib1g-dev"]
    files = "kccachedb.h:kcthread.*:*list*"
    units = "unit=*CacheDB::accept*:unit=*CacheDB::Cursor::*:unit=*CacheDB::*_transaction*"
    annotations = {"kccachedb.h": [
        ("#include <kcdb.h>\n", HEADER),
        ("    slot->capcnt = capcnt;\n",
         "    " + declared("slots", "slot", "sizeof *slot") +
         "    " + declared("buckets", "slot->buckets", "bnum * sizeof *slot->buckets"))]}

    @staticmethod
    def build(folder, c, cpp):
        configure(folder, "--disable-shared", c=c, cpp=cpp)
        command("make", "kccachetest", "CMDLIBS=-lz -lstdc++ -lpthread", cwd=folder)

    def run(self, way):
        times = self.timed(way, "wicked", "-th", 2, 400_000, KCRNDSEED="1")
        self.expect(way, re.search(rb"^ok$", self.bench.log(self, way).read_bytes(), re.MULTILINE))
        return times


class Memcached(Server):
    """Two threads, memcslap as the client: wall time is that of the client."""
    name, archive, binary = "memcached", "memcached", "memcached"
    needed = ["libevent-dev", "libmemcached-tools"]
    operations = 15_000
    files = "items.c:assoc.c:slabs.c:memcached.*:thread.c:proto_text.c:storage.c:util.c:*hash.c"
    units = "unit=do_item_*:unit=do_store_item:unit=do_add_delta"
    annotations = {
        "slabs.c": [
            ("static slabclass_t slabclass[MAX_NUMBER_OF_SLAB_CLASSES];\n", HEADER),
            ("        ret = malloc(size);\n", "        if (ret) " + declared("items", "ret", "size"))],
        "assoc.c": [
            ("static item** primary_hashtable = 0;\n", HEADER),
            ("    if (! primary_hashtable) {\n"
             '        fprintf(stderr, "Failed to init hashtable.\\n");\n'
             "        exit(EXIT_FAILURE);\n    }\n",
             "    " + declared("table", "primary_hashtable", "hashsize(hashpower) * sizeof(void *)")),
            ("    if (primary_hashtable) {\n",
             "        " + declared("table", "primary_hashtable",
                                   "hashsize(hashpower + 1) * sizeof(void *)"))]}
    chosen = "set=heads:set=tails:set=sizes:set=sizes_bytes"

    @staticmethod
    def build(folder, c, _):
        configure(folder, "--disable-docs", c=c)
        command("make", "memcached", cwd=folder)

    def answers(self, port):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"set seen 0 0 2\r\n41\r\nincr seen 1\r\nget seen\r\nquit\r\n")
            text = b""
            while part := client.recv(4096):
                text += part
        return text == b"STORED\r\n42\r\nVALUE seen 0 2\r\n42\r\nEND\r\n"

    def run(self, way):
        port = free_port()

        def work():
            for test in ["set", "get"]:
                command("memcslap", f"--servers=127.0.0.1:{port}", "--concurrency=4",
                        f"--execute-number={self.operations}", "--initial-load=1000",
                        f"--test={test}")
        return self.serve(way, port, work, "-u", "root", "-t", 2, "-p", port, "-U", 0, "-l",
                          "127.0.0.1")


class Civetweb(Server):
    """A web server with four threads; ab as the client, a connection for each of 12,000 requests."""
    name, archive, binary = "civetweb", "civetweb", "civetweb"
    needed = ["apache2-utils"]
    requests = 12_000
    functions = "consume_socket:produce_socket"
    units = "unit=consume_socket:unit=produce_socket"
    annotations = {"src/civetweb.c": [
        ('#include "civetweb.h"\n', HEADER),
        ("\t\tctx->client_wait_events[i] = event_create();\n",
         "\t\t" + declared("sockets", "&ctx->client_socks[i]", "sizeof ctx->client_socks[i]"))]}

    @staticmethod
    def build(folder, c, _):
        # The two functions that are units are inlined otherwise.
        command(*str(c).split(), "-O2", "-g", "-fno-inline", "-pthread", "-Iinclude", "-DNO_SSL",
                "-DLINUX", "src/main.c", "src/civetweb.c", "-o", "civetweb", "-ldl", cwd=folder)

    def page(self):
        folder = self.work / "www"
        folder.mkdir(exist_ok=True)
        page = folder / "page"
        page.write_bytes(self.big_file(1_000_000).read_bytes()[:16384])
        return page

    def words(self, port):
        return ["-listening_ports", f"127.0.0.1:{port}", "-document_root", self.page().parent,
                "-num_threads", 4]

    def answers(self, port):
        return self.page().read_bytes() == read(f"http://127.0.0.1:{port}/page")

    def run(self, way):
        port = free_port()
        return self.serve(way, port, lambda: command(
            "ab", "-q", "-c", 4, "-n", self.requests, f"http://127.0.0.1:{port}/page"),
            *self.words(port))


class Tinyproxy(Server):
    """A web proxy, a thread for each connection; civetweb behind it, ab as the client."""
    name, archive, binary = "tinyproxy", "tinyproxy", "src/tinyproxy"
    needed = ["apache2-utils"]
    requests = 3_000
    files = "stats.c:loop.c:sblist.c"
    units = "unit=update_stats:unit=loop_records_add:unit=connection_loops"
    chosen = "set=stats_buf"
    annotations = {"src/loop.c": [
        ('#include "sock.h"\n', HEADER),
        ("\tloop_records = sblist_new(sizeof (struct loop_record), 32);\n",
         "\t" + declared("records", "loop_records", "sizeof *loop_records"))]}

    @staticmethod
    def build(folder, c, _):
        configure(folder, "--disable-manpage_support", c=c)
        command("make", cwd=folder)

    def answers(self, port):
        url = f"http://127.0.0.1:{self.behind_port}/page"
        return read(url, proxy=f"127.0.0.1:{port}") == self.behind.page().read_bytes()

    def run(self, way):
        port, self.behind_port = free_port(), free_port()
        self.behind = Civetweb(self.bench)
        settings = self.work / "tinyproxy.conf"
        settings.write_text(f"Port {port}\nListen 127.0.0.1\nTimeout 60\nLogLevel Critical\n"
                            "MaxClients 100\nAllow 127.0.0.1\n")
        with beside(self.behind.begin("native", self.behind_port,
                                      *self.behind.words(self.behind_port))):
            return self.serve(way, port, lambda: command(
                "ab", "-q", "-c", 4, "-n", self.requests, "-X", f"127.0.0.1:{port}",
                f"http://127.0.0.1:{self.behind_port}/page"), "-d", "-c", settings)


class SilverSearcher(Program):
    """Searches the source trees of all these programs and a large file with two threads, ten times."""
    name, archive, binary = "silversearcher", "silversearcher-ag", "ag"
    needed = ["autoconf", "automake", "pkg-config", "libpcre3-dev", "liblzma-dev", "zlib1g-dev"]
    files = "search.c:main.c"
    units = "unit=search_file_worker:unit=search_dir"
    chosen = "set=work_queue:set=work_queue_tail:set=done_adding_files:set=stats"

    @staticmethod
    def build(folder, c, _):
        command("sh", "./autogen.sh", cwd=folder)
        configure(folder, c=c, flags="-O2 -g -fcommon")
        command("make", "ag", cwd=folder)

    def run(self, way):
        tree = self.tree()
        times = self.timed(way, "--workers", 2, "-u", "--nocolor", "--stats",
                           "[a-z]+_mutex_[a-z]*lock", *[tree] * 10)
        found = {w: sorted(line for line in self.bench.log(self, w).read_bytes().splitlines()
                           if line.startswith(bytes(tree))) for w in ("native", way)}
        self.expect(way, found["native"] and found["native"] == found[way])
        return times


class Iperf(Program):
    """Sends 12 GB over the loopback device with two threads, which report to a third one through
    rings without locks; the receiver is not instrumented."""
    name, archive, binary = "iperf", "iperf", "src/iperf"
    files = "packet_ring.c:Reporter.c"
    units = "unit=packetring_enqueue:unit=packetring_dequeue"
    annotations = {"src/packet_ring.c": [
        ('#include "Thread.h"\n', HEADER),
        ("    pr->producer = 0;\n",
         "    " + declared("ring", "pr", "sizeof *pr") +
         "    " + declared("ring", "pr->data", "count * sizeof *pr->data"))]}

    @staticmethod
    def build(folder, c, cpp):
        configure(folder, c=c, cpp=cpp)
        (folder / "src/service.c").touch()  # of Windows, which Debian leaves out
        command("make", cwd=folder)

    def run(self, way):
        port = free_port()
        receiver = subprocess.Popen(
            [self.bench.build(self, "native"), "-s", "-p", str(port)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with beside(receiver):
            wait_for(port)
            times = self.timed(way, "-c", "127.0.0.1", "-p", port, "-P", 2, "-n", "6G", "-f", "M")
        self.expect(way, re.search(rb"^\[SUM\].* 12288 MBytes", self.bench.log(self, way).read_bytes(),
                                   re.MULTILINE))
        return times


PROGRAMS = [Pbzip2, Lbzip2, Mksquashfs, Kyotocabinet, Memcached, Civetweb, Tinyproxy, SilverSearcher,
            Iperf]
