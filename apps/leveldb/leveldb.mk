# LevelDB, fetched and compiled with probes, a server around it, and the tests of both (README.md). All of it, the libraries
# included, in the build tree: nothing is installed but packages that it is built with, and those as root only.

LEVELDB := target/leveldb
LEVELDB_STAGE := $(CURDIR)/$(LEVELDB)/stage
# What the server is built of; snappy has no probes, so it is left out.
LEVELDB_CONFIGURE := cmake -G Ninja -S $(LEVELDB)/leveldb -DCMAKE_BUILD_TYPE=Release -DLEVELDB_BUILD_BENCHMARKS=OFF \
	-DHAVE_SNAPPY=OFF -DHAVE_CRC32C=OFF -DHAVE_TCMALLOC=OFF \
	-DCMAKE_C_COMPILER=$(CURDIR)/pass/bin/headway-cc -DCMAKE_CXX_COMPILER=$(CURDIR)/pass/bin/headway-c++
LEVELDB_CMAKE := $(LEVELDB_CONFIGURE) -B $(LEVELDB)/build

# $(call leveldb_or_skip,NAME,TARGETS): makes the targets, or says what they lack.
leveldb_or_skip = if ! why=$$(pass/packages.sh); then echo "SKIPPED $(1): the compiler pass $$why"; \
	elif ! why=$$(apps/leveldb/fetch.sh $(LEVELDB)); then echo "SKIPPED $(1): $$why"; \
	else $(MAKE) --no-print-directory $(2); fi

.PHONY: leveldb test-leveldb leveldb-server leveldb-server-plain leveldb-server-test leveldb-own-tests
leveldb:
	@$(call leveldb_or_skip,leveldb,leveldb-server-plain)

# Minutes: LevelDB's own tests, and the server's.
test-leveldb:
	@$(call leveldb_or_skip,test-leveldb,leveldb-server-test leveldb-own-tests)

# $(call leveldb_built,NAME,BUILD,PROBES): the library in BUILD, and the server NAME of it, with probes on or off.
define leveldb_built
	$(LEVELDB_CONFIGURE) -B $(LEVELDB)/$(2) -DLEVELDB_BUILD_TESTS=OFF >/dev/null
	HEADWAY_PROBES=$(3) ninja -C $(LEVELDB)/$(2) leveldb
	HEADWAY_PROBES=$(3) pass/bin/headway-c++ -std=c++17 -O2 -Wall -Wextra -Werror -I$(LEVELDB)/leveldb/include -I$(LEVELDB_STAGE)/include \
		apps/leveldb/src/server.cc -o $(LEVELDB)/$(1) -L$(LEVELDB_STAGE)/lib -lheadway_shim $(LEVELDB)/$(2)/libleveldb.a \
		-lheadway -lpthread -Wl,-z,now -Wl,-rpath,'$$ORIGIN/stage/lib'
endef

leveldb-server: pass
	$(MAKE) --no-print-directory install-capi DESTDIR= PREFIX=$(LEVELDB_STAGE)
	$(call leveldb_built,leveldb-server,build,on)

# The same by the same compiler without probes: what the papers' systems that do not cooperate run.
leveldb-server-plain: leveldb-server
	$(call leveldb_built,leveldb-server-plain,build-plain,off)

leveldb-server-test: leveldb-server
	@command -v python3 >/dev/null || { echo "SKIPPED leveldb-server-test: it needs Python 3 (apt-get install python3)"; exit 0; }; \
	python3 -B apps/leveldb/test/server_test.py $(LEVELDB)/leveldb-server

# With no probe taken, then the same objects linked so that every probe is.
leveldb-own-tests: pass
	@if ! why=$$(pass/packages.sh libgtest-dev libgmock-dev libbenchmark-dev); then echo "SKIPPED leveldb-own-tests: $$why"; \
	else apps/leveldb/test/own_tests.sh $(LEVELDB) '$(LEVELDB_CMAKE)'; fi
