# The one door for chores. Each is a script that can be run by hand: see scripts/.

PREFIX ?= /usr/local

.PHONY: serve test bench figures-engines figures-hash loom fuzz soak install

# Build and start a server on 127.0.0.1:11211.
serve:
	@scripts/serve.sh $(ARGS)

# Install what the tests need, run every check, end with the counts.
test:
	@scripts/test-all.sh

# The figures of the README.
bench:
	@scripts/bench.sh $(SECONDS)

# The figures of docs/engines.md: engines side by side, in process and behind a server.
figures-engines:
	@scripts/figures-engines.sh $(SECONDS)

# The figures and tables of docs/hashing.md.
figures-hash:
	@scripts/figures-hash.sh $(ARGS)

# The models of the lock-free parts alone.
loom:
	@scripts/loom.sh

# Each fuzz target for FOR seconds.
FOR ?= 60
fuzz:
	@scripts/setup.sh
	@scripts/fuzz.sh $(FOR)

# A long mixed load and long fuzzing, MINUTES each.
MINUTES ?= 30
soak:
	@scripts/soak.sh $(MINUTES)

# The binary, its manual page and completions.
install:
	@scripts/install.sh $(PREFIX)
