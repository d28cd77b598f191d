# Every chore begins here. Each is a script that can be run by hand: see scripts/.

PREFIX ?= /usr/local

.PHONY: serve cluster test bench figures figures-engines figures-hash figures-flow figures-cluster loom tsan aarch64 fuzz soak dpdk \
	release install install-flow uninstall

# Build and start a server on 127.0.0.1:11211.
serve:
	@scripts/serve.sh $(ARGS)

# Build the distributed store and keep one running on 127.0.0.1: 2 servers, and gateways at 11211 and 11212.
cluster:
	@scripts/cluster.sh $(ARGS)

# Install what the tests need, run every check, end with the counts.
test:
	@scripts/test-all.sh

# The figures of README.md and docs/measured.md; WRITE=1 puts them there. See docs/benchmarking.md.
bench:
	@scripts/bench.sh $(SECONDS)

# The papers' figures and the README's claims, run, drawn and judged: ARGS="--quick", or "memc3 cphash/5 --quick". WRITE=1
# writes what was found into docs/papers.md and docs/engines.md.
figures:
	@scripts/figures.sh $(ARGS)

# Those of docs/engines.md: engines side by side, in process and behind a server.
figures-engines:
	@scripts/figures.sh engines cphash/5 cphash/8 cphash/13 $(ARGS)

# The figures and tables of docs/hashing.md.
figures-hash:
	@scripts/figures-hash.sh $(ARGS)

# The tables and plots of docs/flow-cache.md.
figures-flow:
	@scripts/figures-flow.sh

# The figures of SHMEMCache, on OpenSHMEM: latencies, throughput, the pointer directory, the model of many machines.
figures-cluster:
	@scripts/figures.sh shmemcache $(ARGS)

# The models of the lock-free parts alone.
loom:
	@scripts/loom.sh

# The tests with several threads under ThreadSanitizer; the library as on other systems, under AddressSanitizer too.
tsan:
	@scripts/tsan.sh

# Tests, clients and a bench on aarch64, by an emulator.
aarch64:
	@scripts/setup.sh
	@scripts/aarch64.sh

# Each fuzz target for FOR seconds, so many JOBS side by side.
FOR ?= 60
JOBS ?= 1
fuzz:
	@scripts/setup.sh
	@scripts/fuzz.sh $(FOR) $(JOBS)

# A long mixed load and long fuzzing, MINUTES each.
MINUTES ?= 30
soak:
	@scripts/soak.sh $(MINUTES)

# Flow caches in a packet program, on DPDK; the words go to scripts/dpdk.sh.
dpdk:
	@scripts/dpdk.sh $(ARGS)

# What a release consists of, checked: docs/releasing.md. DRY=1 tries it.
release:
	@scripts/release.sh make

# The binaries with their manual pages and completions, the flow cache for C programs and, where OpenSHMEM is, the
# distributed store. DESTDIR goes in front of PREFIX while files are put there; libraries go to LIBDIR.
LIBDIR ?= $(PREFIX)/lib
where = PREFIX="$(PREFIX)" LIBDIR="$(LIBDIR)" DESTDIR="$(DESTDIR)"
install:
	@$(where) scripts/install.sh

# The flow cache alone.
install-flow:
	@$(where) scripts/install.sh flow

uninstall:
	@$(where) scripts/uninstall.sh
