# Two commands matter: `make demo` shows why this exists, `make test` proves that it works.
# Both need a Rust toolchain (rustup picks the pinned one) and a C linker, and nothing else; what a
# part needs beyond that is installed by its target or reported as skipped with the reason.

CARGO ?= cargo
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# Property tests draw the same cases in every run here; `cargo test` by itself explores others.
export PROPTEST_RNG_SEED ?= 20211026

# Where cargo builds, and where `make install`, `install-capi` and `install-pass` put things; DESTDIR is set before it.
CARGO_OUT := $(or $(CARGO_TARGET_DIR),$(CARGO_BUILD_TARGET_DIR),target)
PREFIX ?= /usr/local
override PREFIX := $(abspath $(PREFIX))

HEADWAY := $(CARGO_OUT)/release/headway
NIGHTLY := $(shell $(CARGO) +nightly --version >/dev/null 2>&1 && echo yes)
HOST := $(shell rustc -vV | sed -n 's/^host: //p')

.PHONY: demo reproduce build test check lint unit soak loom shuttle asan tsan docs bench fuzz install clean

demo: build
	$(HEADWAY) demo

# A rack in network namespaces, or on loopback, under racksched, pallas and pallas-paper in turn: a minute or so once built.
.PHONY: demo-rack
demo-rack: toolchain
	$(CARGO) run --release --locked -p headway-rack --example changing_mix -- $(CARGO_OUT)/demo-rack.html

# A key-value server and a batch program trade two cores, by a static split, a 50 ms allocator and shenango in turn: less than a minute once built.
.PHONY: demo-host
demo-host: toolchain
	$(CARGO) run --release --locked -p headway-host --example shared_cores -- $(CARGO_OUT)/demo-host.html

# Minutes: every figure of the papers, at full length.
reproduce: build
	$(HEADWAY) reproduce all --format markdown -o docs/reproduction.md --html $(CARGO_OUT)/reproduction.html
	@echo "docs/reproduction.md is new; the curves are in $(CARGO_OUT)/reproduction.html"

build: toolchain
	$(CARGO) build --release --locked -p headway-cli -p cargo-headway

.PHONY: toolchain
toolchain:
	@command -v $(CARGO) >/dev/null || { echo "headway needs a Rust toolchain: see https://rustup.rs"; exit 1; }
	@command -v cc >/dev/null || { echo "headway needs a C linker: install gcc or clang (Debian: apt-get install gcc libc6-dev)"; exit 1; }

# Every part runs, also after one that failed. A table at the end says what each took, and what was skipped and why. While the workspace's tests wait, what
# the parts after it need is built.
test: toolchain
	@command -v python3 >/dev/null || pass/packages.sh python3 || { echo "make test needs Python 3 (apt-get install python3)"; exit 1; }
	@MAKE="$(MAKE)" .ci/parts packages+lint docs+test-pass workspace+builds test-torture+test-python+asan+loom+shuttle

# Before a commit, a minute or two in a tree that is built: format, lints, tidiness, and the unit tests of what changed and of what imports it.
check: toolchain
	@.ci/check

# What the parts of `make test` need beyond a Rust toolchain and a C linker: installed where that is possible.
.PHONY: packages
packages:
	@.ci/packages

# What the parts after the workspace's tests need, built while a processor has nothing else to do (SCHED_IDLE). What cannot be built fails or is skipped in its own part.
.PHONY: builds
TESTS = .ci/tests $(BUILD_ONLY)
builds: toolchain
	-@chrt --idle 0 $(MAKE) --no-print-directory --keep-going BUILD_ONLY=--build-only torture-built python-built loom shuttle asan

# Every test of the workspace, built once. What .ci/packages has installed is required, and soaks do a tenth of what `make soak` does.
.PHONY: workspace
workspace: toolchain throws
	env HEADWAY_SOAK=100000 HEADWAY_XDP_PACKETS=1000000 HEADWAY_WORLDS=10000 $$(.ci/packages --required) .ci/tests --doc \
		$(foreach name,soak signal,$(THROWS:%=--with "headway-fiber --test $(name)" %)) $(CARGO) test --locked --workspace

# The rack's switch and its control plane alone, before real servers on loopback; `make unit` includes it.
.PHONY: test-rack
test-rack: toolchain
	$(CARGO) test --locked -p headway-rack

# Applications and the daemon of a host, killed, stopped and lied to: `make unit` includes it. It says what it skips, and why.
.PHONY: test-host
test-host: toolchain
	$(CARGO) test --locked -p headway-host -- --nocapture

# The tests that stay on the real clock, twenty times in a row beside four busy loops: hours. BUSY="--only 'headway-rack --test kills'" runs that program.
ROUNDS ?= 20
BUSY ?= --live --only 'headway-fiber *' --only 'headway-kthread *' --only 'headway-sync *'
.PHONY: busy
busy: toolchain
	.ci/tests --rounds $(ROUNDS) --beside 4 $(BUSY) $(CARGO) test --locked --workspace

lint: toolchain
	$(CARGO) fmt --all --check
	for beside in peers python torture; do $(CARGO) fmt --manifest-path $$beside/Cargo.toml --check; done
	for beside in peers python fuzz torture; do $(CARGO) metadata --locked --format-version 1 --manifest-path $$beside/Cargo.toml >/dev/null; done
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

# Every test of the workspace, with short soaks: it says what it skips, and why.
unit: toolchain
	.ci/tests --doc $(CARGO) test --locked --workspace

# Every interleaving of the rings, the parking, the leadership, the lock for fibers and what threads share, at tiny sizes.
loom: toolchain
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$(CARGO_OUT)/loom $(TESTS) $(CARGO) test --locked --profile models \
		-p headway-sync -p headway-fiber -p headway-kthread -p headway-rings -p headway-threads --test loom

# Random interleavings of run queues and parking, at sizes beyond loom's, and of a pool's threads: those that submit, cancel and end it, its workers and who stands in for
# those that block, its dispatcher.
shuttle: toolchain
	RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=$(CARGO_OUT)/shuttle $(TESTS) $(CARGO) test --locked --profile models -p headway-sync --test shuttle
	RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=$(CARGO_OUT)/shuttle $(TESTS) $(CARGO) test --locked --profile models -p headway-pool --lib -- interleavings

# The live engines in deterministic worlds, for so many seconds (docs/worlds.md). `make test` lives through ten thousand.
SECONDS ?= 60
.PHONY: world world-mutants
world: toolchain
	$(CARGO) run --release --locked -p headway-world -- --seed $$(date +%s)000000 --seeds 1000000000 --seconds $(SECONDS)

# Proof that the worlds can fail: each fault that is put in by hand is found within a minute. A quarter of an hour.
world-mutants: toolchain
	crates/world/mutants/run.py

# Fibers interrupted by each mechanism, in one thread and going around among several, with everything live that a suspension must keep:
# a million times each, some minutes; `make test` a tenth of it. C++ exceptions are among it where there is a C++ compiler. Then servers of
# random shape, policy and handlers, which answer ten requests for each of those interruptions. Then threads in user space whose cores come and go.
SOAK ?= 1000000
SOAKS := HEADWAY_SOAK=$(SOAK) $(CARGO) test --locked
soak: toolchain throws
	$(SOAKS) --no-run -p headway-fiber --test soak --test signal
	$(THROWS) $(SOAKS) -p headway-fiber --test soak --test signal -- --nocapture --test-threads=1
	$(SOAKS) -p headway-runtime --test soak -- --nocapture
	$(SOAKS) -p headway-threads --test threads soak -- --nocapture

.PHONY: test-soak
test-soak:
	@$(MAKE) --no-print-directory soak SOAK=100000

# The C++ exceptions of a soak, as a library.
.PHONY: throws
THROWS_OUT := $(abspath $(CARGO_OUT))/soak
THROWS := $(if $(shell command -v c++),LD_PRELOAD=$(THROWS_OUT)/libthrows.so)
throws:
ifneq ($(THROWS),)
	@mkdir -p $(THROWS_OUT)
	@c++ -std=c++17 -O2 -g -Wall -Wextra -fPIC -shared -Wl,-z,now crates/fiber/tests/common/throws.cc -o $(THROWS_OUT)/libthrows.so
else
	@echo "SKIPPED C++ exceptions of the soak: they need a C++ compiler (apt-get install g++)"
endif

# C, C++ and Rust code that believes in threads, each way of it in requests that are interrupted SWITCHES times in the middle, or for 20 ms, by each policy that resumes in
# its own way, with the shim and without, behind three allocators: two minutes once built. `make test-torture SWITCHES=100000` for the whole count.
# TORTURE="--only rand_tokens" does one thing alone; torture/run.py --help tells more.
.PHONY: test-torture torture-built
SWITCHES ?= 300
TORTURE_OUT := $(abspath $(CARGO_OUT))/torture
TORTURE_PACKAGES := libsqlite3-dev libssl-dev libluajit-5.1-dev libprotobuf-dev libjemalloc2 libmimalloc2.0 libtcmalloc-minimal4
test-torture: toolchain
	@if ! why=$$(pass/packages.sh) || ! why=$$(pass/packages.sh g++ python3); then \
		echo "SKIPPED test-torture: the compiler pass $$why"; \
	else \
		pass/packages.sh $(TORTURE_PACKAGES) >/dev/null || for package in $(TORTURE_PACKAGES); do pass/packages.sh $$package >/dev/null || true; done; \
		$(MAKE) --no-print-directory torture-built && \
		python3 -B torture/run.py --release $(TORTURE_OUT)/release --out $(TORTURE_OUT)/room --switches $(SWITCHES) $(TORTURE); \
	fi

torture-built: pass
	CARGO_TARGET_DIR=$(TORTURE_OUT) $(CARGO) build --release --locked --manifest-path torture/Cargo.toml

# The same with all of it built for the address sanitizer and then for the thread sanitizer: a quarter of an hour, half of it for building. SANITIZERS=thread does one alone.
.PHONY: test-torture-sanitized
SANITIZERS ?= address thread
test-torture-sanitized: toolchain pass
ifeq ($(NIGHTLY),yes)
	@pass/packages.sh g++ python3 >/dev/null; \
	for package in $(TORTURE_PACKAGES); do pass/packages.sh $$package >/dev/null || true; done; \
	failed=0; \
	for sanitizer in $(SANITIZERS); do \
		case $$sanitizer in \
		address) cfg=headway_asan; more= ;; \
		thread) cfg=headway_tsan; more=-Zbuild-std; $(RUST_SRC) ;; \
		*) echo "SANITIZERS: there is no $$sanitizer, but address and thread"; exit 2 ;; \
		esac; \
		RUSTFLAGS="-Zsanitizer=$$sanitizer --cfg $$cfg" CARGO_TARGET_DIR=$(TORTURE_OUT)/$$sanitizer \
			$(CARGO) +nightly build $$more --release --locked --target $(HOST) --manifest-path torture/Cargo.toml && \
		python3 -B torture/run.py --sanitizer $$sanitizer --release $(TORTURE_OUT)/$$sanitizer/$(HOST)/release \
			--out $(TORTURE_OUT)/$$sanitizer/room --switches $(SWITCHES) $(TORTURE) || failed=1; \
	done; exit $$failed
else
	@echo "SKIPPED test-torture-sanitized: sanitizers need a nightly toolchain (rustup toolchain install nightly)"
endif

# The modules with unsafe code, under the address sanitizer: it needs a nightly compiler. What is on fibers is looked at without frames that
# returned (docs/fibers.md says why), the rest with them.
asan: toolchain
ifeq ($(NIGHTLY),yes)
	$(ASAN) -p headway-sync -p headway-net -p headway-machine -p headway-load -p headway-fiber -p headway-pool --lib --tests
	$(ASAN) -p headway-runtime --lib --test replay --test udp --test no_alloc --test preemption
else
	@echo "SKIPPED asan: the address sanitizer needs a nightly toolchain (rustup toolchain install nightly)"
endif
# Instrumented, level 2 takes twice as long to compile as level 1, and tests hardly run longer.
ASAN_LEVEL = --config profile.test.package.headway-fiber.opt-level=1
ASAN_BUILD = CARGO_PROFILE_TEST_DEBUG=line-tables-only RUSTFLAGS="-Zsanitizer=address --cfg headway_asan" CARGO_TARGET_DIR=$(CARGO_OUT)/asan
ASAN = $(ASAN_BUILD) $(TESTS) --with 'headway-fiber *' ASAN_OPTIONS=detect_stack_use_after_return=0 \
	--with 'headway-pool *' ASAN_OPTIONS=detect_stack_use_after_return=0 \
	--with 'headway-runtime --test preemption' ASAN_OPTIONS=detect_stack_use_after_return=0 \
	$(CARGO) +nightly test $(ASAN_LEVEL) --locked --target $(HOST)

# What threads share, and threads that lend requests their state, under the thread sanitizer: minutes, most of them for a standard library that it can follow. That one's
# backtraces need more stack than fibers of the tests have.
TSAN = RUST_BACKTRACE=0 RUSTFLAGS="-Zsanitizer=thread --cfg headway_tsan" CARGO_TARGET_DIR=$(CARGO_OUT)/tsan \
	$(CARGO) +nightly test -Zbuild-std --locked --target $(HOST)
# The standard library's source, for one that the thread sanitizer can follow.
RUST_SRC = { [ -d "$$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library" ] || rustup component add rust-src --toolchain nightly; }
tsan: toolchain
ifeq ($(NIGHTLY),yes)
	@if $(RUST_SRC); then \
		set -x; \
		HEADWAY_SOAK=100000 $(TSAN) -p headway-fiber --lib --tests; \
		$(TSAN) -p headway-sync --lib; \
		$(TSAN) -p headway-runtime --lib --test replay --test preemption --test udp --test stacks; \
		$(TSAN) -p headway-pool --lib --test pool; \
	else \
		echo "SKIPPED tsan: the thread sanitizer needs the standard library's source (rustup component add rust-src --toolchain nightly)"; \
	fi
else
	@echo "SKIPPED tsan: the thread sanitizer needs a nightly toolchain (rustup toolchain install nightly)"
endif

docs: toolchain
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps

bench: toolchain
	$(CARGO) bench --workspace

# What people use instead of Headway, beside it: two minutes, on a quiet machine (docs/performance.md). Tokio and rayon are fetched
# from the registry; Go takes part where it is installed. BENCH_PEERS="--rounds 9 --json peers.json" says more; --help tells what there is.
.PHONY: bench-peers
bench-peers: toolchain
	CARGO_TARGET_DIR=$(abspath $(CARGO_OUT))/peers $(CARGO) run --release --locked --manifest-path peers/Cargo.toml -- $(BENCH_PEERS)

# The pool beside rayon and Tokio: what a job costs, how soon it starts, how many end a second; then an axum service in seven ways at four loads, and how soon a
# pool follows a workload that changes its shape. In interleaved rounds, half an hour (docs/performance.md). BENCH_POOL="http --load 0.6" measures that only.
.PHONY: bench-pool
BENCH_POOLS := CARGO_TARGET_DIR=$(abspath $(CARGO_OUT))/pool-peers $(CARGO) run --release --locked --manifest-path peers/pool/Cargo.toml --
bench-pool: toolchain
ifdef BENCH_POOL
	$(BENCH_POOLS) $(BENCH_POOL)
else
	$(BENCH_POOLS)
	$(BENCH_POOLS) http
	$(BENCH_POOLS) shift
endif

# Ten million jobs of every kind in pools that a seed draws, under every policy, ended at any moment: nothing is left of them. With nightly once more under the
# address sanitizer. `make test` has a fiftieth of it.
.PHONY: soak-pool
SOAK_POOL ?= 10000000
soak-pool: toolchain
	HEADWAY_POOL_SOAK=$(SOAK_POOL) $(CARGO) test --locked -p headway-pool --test soak -- --nocapture
ifeq ($(NIGHTLY),yes)
	HEADWAY_POOL_SOAK=$(SOAK_POOL) ASAN_OPTIONS=detect_stack_use_after_return=0 $(ASAN_BUILD) \
	$(CARGO) +nightly test --locked --target $(HOST) -p headway-pool --test soak -- --nocapture
else
	@echo "SKIPPED soak-pool under the address sanitizer: it needs a nightly toolchain (rustup toolchain install nightly)"
endif

# Threads in user space beside POSIX threads and goroutines, on one core, in interleaved rounds: a minute, on a quiet machine (docs/threads.md).
# Go takes part where it is installed or can be. BENCH_THREADS="condvar" measures rows of that name only.
.PHONY: bench-threads
THREADS_OUT := $(abspath $(CARGO_OUT))/bench-threads
bench-threads: toolchain
	@mkdir -p $(THREADS_OUT); \
	cc -O2 -Wall -Wextra crates/threads/benches/peers/pthreads.c -lpthread -o $(THREADS_OUT)/pthreads; \
	peers="--peer pthreads=$(THREADS_OUT)/pthreads"; \
	if command -v go >/dev/null || why=$$(pass/packages.sh golang-go); then \
		go build -o $(THREADS_OUT)/goroutines crates/threads/benches/peers/goroutines.go; \
		peers="--peer go=$(THREADS_OUT)/goroutines $$peers"; \
	else \
		echo "SKIPPED Go beside them: it $$why"; \
	fi; \
	$(CARGO) bench --locked -p headway-threads --bench threads -- $$peers $(BENCH_THREADS)

# What threads that lend requests their state cost: memory, switches, and a process with a thousand of them beside one without, in interleaved rounds. A minute or
# two, on a quiet machine (docs/performance.md). gdb takes part where it is installed.
.PHONY: bench-donors
bench-donors: toolchain
	$(CARGO) bench --locked -p headway-fiber --bench donors

# Instructions of one request as workers grow to 256, by valgrind: ten minutes, on any machine (docs/scaling.md).
.PHONY: bench-scaling
bench-scaling: toolchain
	@command -v valgrind >/dev/null || { echo "SKIPPED bench-scaling: it needs valgrind (apt-get install valgrind)"; exit 0; }; \
	$(CARGO) build --release --locked -p headway-policy --example scaling && $(CARGO) build --release --locked -p headway-cli && \
	python3 -B crates/policy/examples/scaling.py $(CARGO_OUT)/release/examples/scaling $(CARGO_OUT)/release/headway

# The compiler pass, and what instrumented code links.
.PHONY: pass test-pass install-pass
pass:
	@pass/packages.sh
	cmake -G Ninja -S pass -B target/pass >/dev/null
	ninja -C target/pass

# What the pass costs and how well it keeps a quantum: minutes, on a quiet machine (docs/preemption-overhead.md).
# BENCH_PASS="--quick --only fft" says more; pass/suite/bench_pass.py --help tells what there is.
# REAL=1 measures libraries of others instead, fetched as the distribution's source packages, with either kind of probe.
.PHONY: bench-pass
bench-pass: pass
ifeq ($(REAL),1)
	python3 -B pass/suite/bench_pass.py --language real -o target/pass-real.json $(BENCH_PASS)
	python3 -B pass/suite/bench_pass.py --language real --probe tsc -o target/pass-real-tsc.json $(BENCH_PASS)
	python3 -B pass/suite/bench_pass.py --language real --each-probe $(BENCH_PASS)
else
	python3 -B pass/suite/bench_pass.py -o target/pass-suite.json $(BENCH_PASS)
endif

# The suite's programs compute the same with every probe taken.
.PHONY: test-suite
test-suite: pass
	@command -v python3 >/dev/null || { echo "SKIPPED test-suite: it needs Python 3 (apt-get install python3)"; exit 0; }; \
	cd pass/suite && python3 -B -m unittest -q driver.test_stats && python3 -B bench_pass.py --check && \
	python3 -B bench_pass.py --check --language rust

# The suite's programs, and libraries of others, each as a request of a server that interrupts it 100 000 times or for 5 s, and resumes it at its own worker and at any: a quarter of an hour.
.PHONY: test-served
test-served: pass
	$(CARGO) build --release --locked -p headway-capi
	cd pass/suite && for language in c real; do \
		python3 -B bench_pass.py --served $(abspath $(CARGO_OUT))/release/libheadway_capi.so --language $$language; \
	done

# The own tests of 25 programs of others, their main on a fiber that is suspended at every probe and changes threads: half an hour. SUITES="--only zlib" does one alone.
.PHONY: test-suites
test-suites: pass
	$(CARGO) build --release --locked -p headway-fiber --example roaming
	python3 -B pass/suite/roaming.py $(abspath $(CARGO_OUT))/release/examples/libroaming.so $(SUITES)

# Skipped where its compilers are not and cannot be installed. In `make test` it comes first, since the C programs need the pass.
test-pass:
	@if why=$$(pass/packages.sh); then \
		$(MAKE) --no-print-directory pass && ctest --test-dir target/pass --output-on-failure --parallel 2 && \
		$(MAKE) --no-print-directory test-suite; \
	else \
		echo "SKIPPED test-pass: the compiler pass $$why"; \
	fi

install-pass: pass
	DESTDIR=$(DESTDIR) cmake --install target/pass --prefix $(PREFIX)

# The Python package, as a wheel, in a virtual environment of its own; python/requirements.txt pins all that is in it.
.PHONY: python test-python
PYTHON_OUT := $(abspath $(CARGO_OUT))/python
VENV := $(PYTHON_OUT)/venv
python: toolchain
	@PYTHON_OUT=$(PYTHON_OUT) CARGO=$(CARGO) python/build

# The package against the command: its tests, those of Ray and Dask on clusters on this machine, its types, its style, its notebooks, and the wheel under
# the other versions of Python that are here. The command is the one that the workspace's tests have built: by the same selection, since with fewer tests cargo compiles
# half of the workspace again, procedural macros first.
test-python: TESTED := $(abspath $(CARGO_OUT))/debug/headway
test-python: toolchain
	@if ! why=$$(PYTHON_OUT=$(PYTHON_OUT) python/build --packages); then \
		echo "SKIPPED test-python: $$why"; \
	else \
		$(CARGO) test --locked --workspace --no-run && $(MAKE) --no-print-directory python-built && \
		$(VENV)/bin/ruff check python && $(VENV)/bin/ruff format --check python && \
		(cd python && $(VENV)/bin/mypy) && \
		(cd python && HEADWAY=$(TESTED) $(VENV)/bin/pytest -rs) && \
		HEADWAY=$(TESTED) python/versions $(PYTHON_OUT); \
	fi

# A tested wheel needs no ThinLTO among the units of its crates; `make python` builds the wheel as it is released.
python-built: export CARGO_PROFILE_RELEASE_LTO := off
python-built: python
	CARGO_TARGET_DIR=$(PYTHON_OUT) $(CARGO) clippy --release --locked --manifest-path python/Cargo.toml -- -D warnings

# The package's rate beside the command's, sweeps on 1 to N cores (BENCH_PYTHON="--on threads --most 16"), tuning beside the planner's grid: minutes.
.PHONY: bench-python
bench-python: build python
	$(VENV)/bin/python python/measure/speed.py $(HEADWAY)
	$(VENV)/bin/python python/measure/cores.py $(BENCH_PYTHON)
	$(VENV)/bin/python python/measure/tuning.py

# The C programs alone; without a compiler with the pass (`make pass`) they say what they skip.
.PHONY: test-capi header
test-capi: toolchain
	@pass/packages.sh libjemalloc2 libasio-dev librocksdb-dev || true
	$(CARGO) test --locked --workspace --test programs --test pools -- --nocapture

# The C interface's header, of its source; a test checks that it is current.
header: toolchain
	HEADWAY_WRITE_HEADER=1 $(CARGO) test --locked -p headway-capi --test header

# The switch in the kernel and `AF_XDP` alone: as root, else it says what it skips. `make test` has installed the compiler before it builds.
.PHONY: xdp test-xdp
test-xdp: toolchain
	@if ! why=$$(pass/packages.sh clang-19 libbpf-dev iproute2 ethtool); then \
		echo "SKIPPED test-xdp: the XDP program $$why"; \
	elif [ "$$(id -u)" != 0 ]; then \
		echo "SKIPPED test-xdp: loading an XDP program needs root"; \
	else \
		why=$$(pass/packages.sh curl bind9-dnsutils dnsperf libmemcached-tools) || echo "SKIPPED other programs' clients: $$why"; \
		HEADWAY_XDP_REQUIRED=1 HEADWAY_XDP_PACKETS=1000000 .ci/tests $(CARGO) test --locked --workspace --test planes --test fates --test namespaces --test sides --test tags --test cost && \
		HEADWAY_XDP_REQUIRED=1 .ci/tests $(CARGO) test --locked --workspace --test cli --test udp -- _xdp; \
	fi

# The pages of `headway rack` and others in a browser alone.
.PHONY: test-pages
test-pages: toolchain
	@if ! why=$$(pass/packages.sh chromium); then \
		echo "SKIPPED test-pages: a browser without a screen $$why"; \
	else \
		HEADWAY_BROWSER_REQUIRED=1 $(CARGO) test --locked --workspace --test cli browser -- --nocapture; \
	fi

# The switch in the kernel and in user space beside nftables and a bare relay, in namespaces; then what a packet costs in the kernel: as root.
.PHONY: bench-rack
bench-rack: toolchain
	@if ! why=$$(pass/packages.sh clang-19 libbpf-dev iproute2 ethtool nftables); then \
		echo "SKIPPED bench-rack: it $$why"; \
	else \
		$(CARGO) run --release --locked -p headway-xdp --example beside; \
		$(CARGO) bench --locked -p headway-xdp --bench cost; \
	fi

# The XDP programs as files, for bpftool and for reading: the crate compiles its own when it needs them.
xdp: toolchain
	$(CARGO) run --locked -p headway-xdp --example objects -- $(CARGO_OUT)/xdp

# A minute per target, or FUZZ_SECONDS; needs nightly and cargo-fuzz (cargo install cargo-fuzz). A target that finds something does not keep the others from
# running.
FUZZ_SECONDS = 60
fuzz: toolchain
	@$(CARGO) fuzz --version >/dev/null 2>&1 || { echo "make fuzz needs cargo-fuzz: cargo install cargo-fuzz"; exit 1; }
	@failed=; for target in $$(cd fuzz && $(CARGO) +nightly fuzz list); do \
		(cd fuzz && $(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS)) || failed="$$failed $$target"; \
	done; \
	[ -z "$$failed" ] || { echo "found something in:$$failed"; exit 1; }

install: build
	install -Dm755 $(HEADWAY) $(DESTDIR)$(PREFIX)/bin/headway
	install -Dm755 $(dir $(HEADWAY))cargo-headway $(DESTDIR)$(PREFIX)/bin/cargo-headway
	$(HEADWAY) man --dir $(DESTDIR)$(PREFIX)/share/man/man1
	mkdir -p $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$(HEADWAY) completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/headway

# The C interface: both libraries, the headers, the shim for programs with locks, and what pkg-config needs.
.PHONY: install-capi
CAPI_ABI := $(shell sed -n 's/^pub const HEADWAY_ABI_VERSION: u32 = \([0-9]*\);/\1/p' crates/capi/src/server.rs)

install-capi: toolchain
	$(CARGO) build --release --locked -p headway-capi
	install -Dm755 $(CARGO_OUT)/release/libheadway_capi.so $(DESTDIR)$(PREFIX)/lib/libheadway.so.$(CAPI_ABI)
	ln -sf libheadway.so.$(CAPI_ABI) $(DESTDIR)$(PREFIX)/lib/libheadway.so
	install -Dm644 $(CARGO_OUT)/release/libheadway_capi.a $(DESTDIR)$(PREFIX)/lib/libheadway.a
	install -Dm644 -t $(DESTDIR)$(PREFIX)/include crates/capi/include/*.h crates/capi/include/*.hpp
	cc -std=gnu11 -O2 -fPIC -fexceptions -shared -Wl,-z,now crates/capi/shim/*.c -L$(DESTDIR)$(PREFIX)/lib -lheadway \
		-Wl,-rpath,'$$ORIGIN' -o $(DESTDIR)$(PREFIX)/lib/libheadway_shim.so
	mkdir -p $(DESTDIR)$(PREFIX)/lib/pkgconfig
	sed -e 's|@prefix@|$(PREFIX)|' -e "s|@version@|$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)|" \
		crates/capi/headway.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/headway.pc

include apps/leveldb/leveldb.mk

clean:
	$(CARGO) clean
