# ckv: a compressed, compact key/value type for Redis. `make help` lists the targets.

CC           = gcc
CLANG        = clang
PYTHON       = python3
REDIS_SERVER = redis-server
VALKEY_SERVER = $(wildcard build/servers/valkey-9.1/redis-server)
PREFIX       = /usr
PORT         = 6379
N            =
DATA         =
DATA_DIR     = ../shared/data
FUZZ_SECONDS = 60
SOAK_ARGS    =
PYTEST_ARGS  =
# Integration tests at a time: they wait for servers and timers more than half of the time.
TEST_WORKERS := $(shell expr $$(nproc) \* 2)
SUITE_SERVER = redis-7.0
SUITE_MODE   = prefixes
SUITE_FILES  =
SUITE_JOBS   = 2
CLIENTS_MODE = prefixes
CLIENTS      =

# The commit of the last release, which `make test-upgrade` upgrades from.
LAST_RELEASE = c4be429502ed7b9209979067dfa9f1fe64df87b5

# Servers that `make servers` builds from Debian's source packages: <name>=<package>/<suite>.
SERVERS = redis-7.0=redis/bookworm redis-8.0=redis/trixie redis-8.6=redis/experimental \
          valkey-8.1=valkey/trixie valkey-9.1=valkey/sid
# Those that are tested with several io-threads as well.
NEWEST  = redis-8.6 valkey-9.1

export CC PYTHON REDIS_SERVER REDISMODULE_INCLUDE BASE

# What may be added to (CFLAGS, LDFLAGS) and what must be there. An include path of ours comes last:
# a redismodule.h of the system is preferred, REDISMODULE_INCLUDE=<dir> comes before both.
# The compiler sees the module as a whole: to find a record takes a dozen small functions of as many files.
CFLAGS    = -O3 -g -flto=auto
WARNINGS  = -Wall -Wextra -Werror
CORE_INCLUDES = -Imodule/core
INCLUDES  = -Imodule $(CORE_INCLUDES) $(if $(REDISMODULE_INCLUDE),-I$(REDISMODULE_INCLUDE)) -idirafter build/deps/include
ALL_FLAGS = -std=c11 -D_GNU_SOURCE $(WARNINGS) -MMD -MP
COVERAGE  = -O1 -g -w --coverage -fprofile-update=atomic
SANITIZE  = -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
TSAN      = -O1 -g -fno-omit-frame-pointer -fsanitize=thread
LIBS      = -lzstd -lpthread -lm
BENCH_LIBS = -lhiredis -lmemcached -lzstd -lz -lpthread -lm
ESTIMATE_LIBS = -lhiredis -lssl -lcrypto -lzstd -lm

CORE_C    = $(wildcard module/core/*/*.c)
MODULE_C  = $(CORE_C) $(filter-out module/core/%,$(wildcard module/*.c module/*/*.c))
UNIT_C    = $(wildcard tests/unit/*/test_*.c)
FUZZ_C    = $(wildcard tests/fuzz/fuzz_*.c)
CODEC_C   = $(wildcard bench/codec/*.c)
BENCH_C   = $(wildcard bench/ckv-bench/*.c)
COMMON_C  = $(wildcard bench/common/*.c)
ESTIMATE_C = $(wildcard tools/ckv-estimate/*.c)
ESTIMATE_ALONE = $(patsubst %,tools/ckv-estimate/%.c,counted family interval printable uri) bench/common/fail.c
LINT_C    = $(wildcard module/*.[ch] module/*/*.[ch] module/core/*/*.[ch] tests/unit/*.h tests/unit/*/*.[ch] tests/fuzz/*.[ch] \
            bench/*.c bench/*/*.[ch] tools/*/*.[ch])

# What the integration tests would build themselves, two of them at a time.
TESTED_PROGRAMS = build/ckv-bench build/ckv-estimate build/bench-codec build/bench-layout build/filter.so

MODULE_O  = $(MODULE_C:%.c=build/release/%.o)
ASAN_O    = $(MODULE_C:%.c=build/asan/%.o)
TSAN_O    = $(MODULE_C:%.c=build/tsan/%.o)
COVER_O   = $(MODULE_C:%.c=build/coverage/%.o)
FUZZ_O    = $(MODULE_C:%.c=build/fuzz/%.o) build/fuzz/tests/fuzz/shim.o
CODEC_O   = $(CODEC_C:%.c=build/release/%.o) $(COMMON_O) $(CORE_C:%.c=build/release/%.o)
COMMON_O  = $(COMMON_C:%.c=build/release/%.o)
UNIT      = $(UNIT_C:%.c=build/asan/%)
COVER     = $(UNIT_C:%.c=build/coverage/%)
FUZZ      = $(FUZZ_C:%.c=build/fuzz/%)

# What is being compiled; `make V=1` shows how.
say = $(if $(V),,@echo '  $(1) $@';)

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
.PHONY: all help setup demo test test-programs coverage-programs test-aof test-replica test-asan test-tsan test-long unit fuzz fuzz-short integration soak coverage lint format \
        run install deb test-deb bench-codec \
        bench-throughput bench-cache bench-caches bench-scale bench-layout bench-estimate bench-choice bench-moving bench bench-full servers test-servers test-redis-suite test-clients \
        test-upgrade test-stress test-arm64 test-fleet test-migrations image test-image clean distclean \
        setup-build setup-server setup-python setup-python3 setup-clients setup-glide setup-tcl setup-fuzz setup-lint setup-coverage setup-deb setup-bench \
        setup-arm64 setup-image setup-imagetest setup-estimate

all: build/ckv.so build/ckv-estimate ## build the module, build/ckv.so, and build/ckv-estimate (the default)

help: ## this list
	@sed -n 's/^\([a-z0-9 -]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20
	@echo
	@echo "Variables: N=<records> DATA=<file> (demo)  PORT=<port> (run)  REDISMODULE_INCLUDE=<dir>"
	@echo "           REDIS_SERVER=<binary>  FUZZ_SECONDS=<s>  PYTEST_ARGS='-k expire'  TEST_WORKERS=<tests at a time>"
	@echo "           DESTDIR=<dir>"

setup: ## install what is missing to build and to test (apt, .venv, redismodule.h)
	@scripts/setup.sh all

# Each asks the script, which takes a moment when nothing is missing. Used as order-only
# prerequisites, so that nothing is rebuilt because of them.
setup-build setup-server setup-python setup-python3 setup-clients setup-glide setup-tcl setup-fuzz setup-lint setup-coverage setup-deb setup-bench \
setup-arm64 setup-image setup-imagetest setup-estimate:
	@scripts/setup.sh $(@:setup-%=%)

# Core is compiled with no include path to anything else, and cannot call malloc(): where the compiler sees each file by itself.
build/release/module/core/%.o: INCLUDES = $(CORE_INCLUDES)
build/asan/module/core/%.o build/fuzz/module/core/%.o build/coverage/module/core/%.o build/arm64/module/core/%.o: \
    INCLUDES = $(CORE_INCLUDES) -include base/poison.h

# --- the module -----------------------------------------------------------------------------------

build/ckv-estimate: $(ESTIMATE_C:%.c=build/release/%.o) $(COMMON_O) $(CORE_C:%.c=build/release/%.o)
	$(call say,LINK)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(ESTIMATE_LIBS)

$(ESTIMATE_C:%.c=build/release/%.o): | setup-estimate

build/release/tools/%.o: INCLUDES += -Ibench

build/ckv.so: $(MODULE_O)
	$(call say,LINK)$(CC) -shared $(CFLAGS) $(LDFLAGS) -Wl,-z,defs -o $@ $^ $(LIBS)

# RedisModule_OnLoad is the one symbol to be seen from outside; it says so in its source.
build/release/%.o: %.c Makefile | setup-build
	@mkdir -p $(@D)
	$(call say,CC  )$(CC) $(ALL_FLAGS) $(CFLAGS) -fPIC -fvisibility=hidden $(INCLUDES) -c -o $@ $<

run: build/ckv.so | setup-server ## a redis-server with the module in the foreground, PORT=6379
	$(REDIS_SERVER) --port $(PORT) --bind 127.0.0.1 --save "" --loadmodule $(CURDIR)/build/ckv.so

install: build/ckv.so build/ckv-estimate ## put the module into $(DESTDIR)/usr/lib/redis/modules, ckv-estimate into bin
	install -d $(DESTDIR)$(PREFIX)/lib/redis/modules $(DESTDIR)$(PREFIX)/bin
	install -m 755 build/ckv.so $(DESTDIR)$(PREFIX)/lib/redis/modules/ckv.so
	install -m 755 build/ckv-estimate $(DESTDIR)$(PREFIX)/bin/ckv-estimate

deb: | setup-build setup-deb ## a Debian package, build/redis-ckv_<version>_<architecture>.deb
	rm -f build/redis-ckv_*.deb
	debian/rules binary
	dh_clean

test-deb: deb | setup-server ## install it on this machine, use it, remove it (as root)
	scripts/test_deb.sh build/redis-ckv_*.deb

# --- tests ----------------------------------------------------------------------------------------

# What these run, with nothing run yet: `make -j2 test-programs` builds two files at a time.
test-programs: $(UNIT) $(FUZZ) build/ckv.so $(TESTED_PROGRAMS)
coverage-programs: $(COVER) build/coverage/ckv.so

test: unit fuzz-short integration ## unit tests, short fuzzing, integration tests

test-long: fuzz ## what takes longer: every fuzz target for a minute, five minutes of soak
	$(MAKE) soak SOAK_ARGS='--seconds 300'

# Each test is a program, built with AddressSanitizer and UBSan.
unit: $(UNIT) ## the C tests of module/core, and of what ckv-estimate has of its own
	@for test in $(UNIT); do echo "== $$test"; $$test || exit 1; done

build/asan/%.o: %.c Makefile | setup-build
	@mkdir -p $(@D)
	$(call say,CC  )$(CC) $(ALL_FLAGS) $(SANITIZE) -fPIC -fvisibility=hidden $(INCLUDES) -c -o $@ $<

build/asan/tests/unit/%: build/asan/tests/unit/%.o $(filter build/asan/module/core/%,$(ASAN_O))
	$(call say,LINK)$(CC) $(SANITIZE) -o $@ $^ $(LIBS)

# Those of ckv-estimate need what of it knows no server. (By name: of two patterns make takes the one whose
# prerequisites are there already.)
$(filter build/asan/tests/unit/estimate/%,$(UNIT)): %: %.o $(ESTIMATE_ALONE:%.c=build/asan/%.o)
	$(call say,LINK)$(CC) $(SANITIZE) -o $@ $^ $(LIBS)

build/asan/tests/unit/estimate/%.o build/asan/tools/%.o build/asan/bench/%.o \
build/coverage/tests/unit/estimate/%.o build/coverage/tools/%.o build/coverage/bench/%.o: INCLUDES += -Ibench -Itools/ckv-estimate

fuzz: $(FUZZ) ## every fuzz target for FUZZ_SECONDS=60
	@for target in $(FUZZ); do scripts/fuzz.sh $$target $(FUZZ_SECONDS) || exit 1; done

fuzz-short: $(FUZZ)
	@for target in $(FUZZ); do scripts/fuzz.sh $$target 3 || exit 1; done

build/fuzz/%.o: %.c Makefile | setup-build setup-fuzz
	@mkdir -p $(@D)
	$(call say,CC  )$(CLANG) $(ALL_FLAGS) $(SANITIZE) -fsanitize=fuzzer-no-link $(INCLUDES) -c -o $@ $<

build/fuzz/tests/fuzz/%: build/fuzz/tests/fuzz/%.o $(FUZZ_O)
	$(call say,LINK)$(CLANG) $(SANITIZE) -fsanitize=fuzzer -o $@ $^ $(LIBS)

integration_tests = .venv/bin/python -m pytest tests/integration -n $(TEST_WORKERS) --dist worksteal

integration: build/ckv.so $(TESTED_PROGRAMS) | setup-server setup-python ## the tests against a real redis-server
	$(integration_tests) $(PYTEST_ARGS)

soak: build/ckv.so | setup-server setup-python ## 100M mixed operations, all checked; the same again goes on after an interruption (SOAK_ARGS='--seconds 300')
	.venv/bin/python tests/soak/soak.py $(SOAK_ARGS)

# Lines that the unit tests and the integration tests reach. What a server's child does (BGSAVE) is not
# counted: it ends without writing its figures. How long slices, and looks at rules, take is asked of the build that users have:
# where each line counts, adding up the lengths of a page's 900 records makes slices of 9 ms of such of 1.
# What is about programs, pages, memory, time or adversaries reaches no lines of its own.
# A server ends while its threads still count: gcov works out some branches from counters that do not belong together, once in
# some runs as -1 (GCC's bug 68080). gcovr names such a branch and goes on.
COVERAGE_WITHOUT = bench bench_caches ckv_bench cluster_model docs estimate estimate_odd estimate_sample hash_flooding install large_payloads layers \
                   memory_figures old_dictionaries slices soak whole_way
gcovr = gcovr --root . --gcov-ignore-parse-errors
coverage: coverage-programs $(TESTED_PROGRAMS) | setup-server setup-python setup-coverage ## fails below 95% of core's lines, 85% of module's
	find build/coverage -name '*.gcda' -delete
	@for test in $(COVER); do echo "== $$test"; $$test || exit 1; done
	CKV_MODULE=$(CURDIR)/build/coverage/ckv.so $(integration_tests) $(COVERAGE_WITHOUT:%=--ignore tests/integration/test_%.py) \
	    --deselect test_transparent_acl.py::test_rules_that_many_users_have_are_looked_at_once $(PYTEST_ARGS)
	$(gcovr) --filter module/core/ --fail-under-line 95 build/coverage
	$(gcovr) --filter 'module/(?!core/)' --fail-under-line 85 build/coverage

build/coverage/ckv.so: $(COVER_O)
	$(call say,LINK)$(CC) -shared $(COVERAGE) -Wl,-z,defs -o $@ $^ $(LIBS)

build/coverage/%.o: %.c Makefile | setup-build
	@mkdir -p $(@D)
	$(call say,CC  )$(CC) $(ALL_FLAGS) $(COVERAGE) -fPIC -fvisibility=hidden $(INCLUDES) -c -o $@ $<

build/coverage/tests/unit/%: build/coverage/tests/unit/%.o $(filter build/coverage/module/core/%,$(COVER_O))
	$(call say,LINK)$(CC) $(COVERAGE) -o $@ $^ $(LIBS)

$(filter build/coverage/tests/unit/estimate/%,$(COVER)): %: %.o $(ESTIMATE_ALONE:%.c=build/coverage/%.o)
	$(call say,LINK)$(CC) $(COVERAGE) -o $@ $^ $(LIBS)

lint: | setup-lint ## clang-format, cppcheck, and who includes whom (scripts/layers.txt)
	clang-format --dry-run -Werror $(LINT_C)
	cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
	    --error-exitcode=1 -D__GNUC__=12 -Imodule $(CORE_INCLUDES) -Ibench $(filter %.c,$(LINT_C))
	$(PYTHON) scripts/check_layers.py

format: | setup-lint ## let clang-format lay out the C sources
	clang-format -i $(LINT_C)

# --- benchmarks -----------------------------------------------------------------------------------

# $(call measure,<verb>,<its files unless DATA= names others>)
measure = bench/compare.py $(1) --redis-server $(REDIS_SERVER) $(addprefix --data ,$(or $(DATA),$(2)))
ALL_DATA = $(wildcard $(DATA_DIR)/*.txt $(DATA_DIR)/*.u32le)
BESIDE   = $(addprefix --valkey-server ,$(VALKEY_SERVER))

demo: build/ckv.so | setup-server setup-python3 ## real records as SET and as CSET side by side (N=200000 DATA=file)
	@$(PYTHON) bench/compare.py demo --redis-server $(REDIS_SERVER) $(if $(DATA),--data '$(DATA)') \
	    $(addprefix --records ,$(N)) $(DEMO_ARGS)

bench-throughput: build/ckv.so build/ckv-bench | setup-server setup-python3 ## redis-benchmark: CSET and CGET against SET and GET
	@$(PYTHON) bench/compare.py throughput --redis-server $(REDIS_SERVER) $(if $(DATA),--data '$(DATA)') \
	    $(addprefix --requests ,$(N))

bench-codec: build/bench-codec | setup-python3 ## bytes and speed of the codecs alone (DATA='file ...')
	$(PYTHON) bench/compare.py codec $(addprefix --data ,$(or $(DATA),$(ALL_DATA)))

bench-cache: build/ckv.so | setup-server setup-python3 ## expiry under load, hit rates, memory at maxmemory (SCALE=0.1 PARTS=hits)
	$(PYTHON) $(call measure,cache_duty,$(wildcard $(DATA_DIR)/tweets.txt)) $(addprefix --scale ,$(SCALE)) \
	    $(addprefix --parts ,$(PARTS))

bench-caches: build/ckv.so build/ckv-bench | setup-server setup-python3 ## 53 published caches by SET and GET: RAM, time, hits (CACHES='6 11 52' SCALE=2)
	$(PYTHON) $(call measure,caches,$(ALL_DATA)) --caches $(DATA_DIR)/caches.csv $(addprefix --scale ,$(SCALE)) \
	    $(addprefix --cluster ,$(CACHES))

bench-scale: build/ckv.so build/ckv-bench | setup-server setup-python3 ## density, speed, pauses, churn by the number of records (N=10000000)
	$(PYTHON) $(call measure,scale,$(wildcard $(DATA_DIR)/tweets.txt $(DATA_DIR)/tweets_big.txt)) $(addprefix --records ,$(N)) \
	    $(addprefix --parts ,$(PARTS)) $(addprefix --kinds $(DATA_DIR)/,tweets.txt ohio.txt github.txt)

bench-estimate: build/ckv.so build/ckv-bench build/ckv-estimate | setup-server setup-python3 ## what ckv-estimate says, against what the records take (N=200000 DATA='file ...')
	$(PYTHON) $(call measure,estimate,$(ALL_DATA)) $(addprefix --records ,$(N))

bench-layout: build/bench-layout | setup-python3 ## what each byte of a record in memory is for (N=10000000 DATA=file)
	$(PYTHON) bench/compare.py layout $(addprefix --records ,$(N)) --data $(or $(DATA),$(DATA_DIR)/tweets.txt)

build/bench-layout: build/release/bench/layout.o $(COMMON_O) $(CORE_C:%.c=build/release/%.o)
	$(call say,LINK)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

build/filter.so: build/release/bench/filter.o
	$(call say,LINK)$(CC) $(CFLAGS) $(LDFLAGS) -shared -o $@ $^

build/bench-codec: $(CODEC_O)
	$(call say,LINK)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

bench: build/ckv.so build/ckv-bench build/filter.so | setup-server setup-python setup-glide ## compare stores, write docs/results.md (N=20000 DATA='file ...')
	$(call compare,$(or $(N),20000))

bench-full: build/ckv.so build/ckv-bench build/filter.so | setup-server setup-python setup-glide ## the same with 10M records of each file
	$(call compare,$(or $(N),10000000))

bench-choice: build/ckv.so build/ckv-bench | setup-server setup-python3 ## the README's picture: tweets, sessions, id pairs in what one might take instead (N=1000000)
	$(PYTHON) bench/compare.py cache --redis-server $(REDIS_SERVER) $(BESIDE) --records $(or $(N),1000000) \
	    --data $(DATA_DIR)/tweets.txt --data sessions --data ids --json bench/results/choice.json

bench-moving: build/ckv.so build/ckv-bench | setup-server setup-python ## move N=1000000 strings into ckv and out under 20,000 requests a second
	.venv/bin/python $(call measure,moving,$(wildcard $(DATA_DIR)/tweets.txt)) --records $(or $(N),1000000)

define compare
	build/glide-venv/bin/python $(call measure,cache,$(ALL_DATA)) $(BESIDE) --records $(1)
	$(MAKE) bench-choice PYTHON=.venv/bin/python
	.venv/bin/python $(call measure,uuid,$(ALL_DATA)) --records $(1)
	.venv/bin/python bench/compare.py latency --redis-server $(REDIS_SERVER)
	.venv/bin/python bench/compare.py fans --redis-server $(REDIS_SERVER)
	.venv/bin/python $(call measure,transparent,$(wildcard $(DATA_DIR)/tweets.txt))
	.venv/bin/python $(call measure,long_values,$(ALL_DATA))
	.venv/bin/python $(call measure,sustained,$(ALL_DATA))
	.venv/bin/python $(call measure,moving,$(wildcard $(DATA_DIR)/tweets.txt))
	.venv/bin/python bench/compare.py report
endef

build/ckv-bench: $(BENCH_C:%.c=build/release/%.o) $(COMMON_O)
	$(call say,LINK)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(BENCH_LIBS)

$(BENCH_C:%.c=build/release/%.o): | setup-bench

build/release/bench/%.o: INCLUDES += -Ibench

# --- other servers --------------------------------------------------------------------------------

servers: ## build the servers that `make test-servers` tests with, under build/servers
	@for server in $(SERVERS); do scripts/build_server.sh $$server || exit 1; done

test-aof test-replica: test-%: build/ckv.so $(TESTED_PROGRAMS) | setup-server setup-python ## the integration tests, reloaded from an AOF or compared with a replica after each
	$(integration_tests) --topology $* --no-slow $(PYTEST_ARGS)

# The server is built with AddressSanitizer as well: the runtime has to be there before the module.
test-asan: build/asan/ckv.so build/servers/redis-7.0-asan/redis-server $(TESTED_PROGRAMS) | setup-python ## the integration tests with AddressSanitizer, LeakSanitizer and UBSan
	$(integration_tests) --topology asan --no-slow $(PYTEST_ARGS)

build/asan/ckv.so: $(ASAN_O)
	$(call say,LINK)$(CC) -shared $(SANITIZE) -o $@ $^ $(LIBS)

# Of other servers: make build/servers/valkey-9.1-tsan/redis-server test-tsan REDIS_SERVER=$$PWD/build/servers/valkey-9.1-tsan/redis-server
build/servers/%/redis-server: server = $(patsubst %-asan,%,$(patsubst %-tsan,%,$*))
build/servers/%/redis-server: | setup-build
	scripts/build_server.sh $*=$(patsubst $(server)=%,%,$(filter $(server)=%,$(SERVERS)))

# What threads share with the main thread. Most other tests give a server less time than it takes so; io-threads of Redis 7.0 have reports of their own.
TSAN_TESTS = everything_in_between or two_optimizes or flushed_while
test-tsan: build/tsan/ckv.so build/servers/redis-7.0-tsan/redis-server | setup-python ## integration tests of what threads do, with ThreadSanitizer
	CKV_STEPS=$${CKV_STEPS:-40} .venv/bin/python -m pytest tests/integration/test_young.py tests/integration/test_training.py \
	    -k '$(TSAN_TESTS)' -n $(TEST_WORKERS) --dist worksteal --topology tsan --no-slow $(PYTEST_ARGS)

build/tsan/%.o: %.c Makefile | setup-build
	@mkdir -p $(@D)
	$(call say,CC  )$(CC) $(ALL_FLAGS) $(TSAN) -fPIC -fvisibility=hidden $(INCLUDES) -c -o $@ $<

build/tsan/ckv.so: $(TSAN_O)
	$(call say,LINK)$(CC) -shared $(TSAN) -o $@ $^ $(LIBS)

# Threads of servers that wait for work take all of a processor: two tests at a time then.
test-servers: build/ckv.so servers $(TESTED_PROGRAMS) | setup-python ## the integration tests on each of those servers, on the newest with 4 io-threads as well
	scripts/check_servers.sh $(SERVERS)
	@failed=; for server in $(SERVERS:=,1) $(NEWEST:=,4); do \
	    name=$${server%%[=,]*}; threads=$${server##*,}; \
	    echo "== $$name, io-threads $$threads"; \
	    REDIS_SERVER=$(CURDIR)/build/servers/$$name/redis-server \
	        $(integration_tests) -rs --io-threads $$threads $$([ $$threads = 1 ] || echo "-n 2") $(PYTEST_ARGS) || \
	        failed="$$failed $$name,$$threads"; \
	done; \
	test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

# The modes: prefixes (the module with ckv.prefixes "*") and without.
test-redis-suite: build/ckv.so | setup-python3 setup-tcl ## Redis' own tests, every string in ckv (SUITE_SERVER= _MODE= _FILES= _JOBS=)
	scripts/build_server.sh $(or $(filter $(SUITE_SERVER)=%,$(SERVERS)),$(error SUITE_SERVER=$(SUITE_SERVER) is none of $(SERVERS)))
	$(PYTHON) tests/redis_suite/run.py --server $(SUITE_SERVER) --mode $(SUITE_MODE) --jobs $(SUITE_JOBS) $(SUITE_FILES)

# The modes: prefixes, and plain, which is without.
test-clients: build/ckv.so | setup-server setup-python setup-clients ## the tests of Redis' clients and of applications (CLIENTS_MODE= CLIENTS='redis-py-resp2 django')
	.venv/bin/python tests/clients/run.py --mode $(CLIENTS_MODE) $(CLIENTS)

# --- releases and packages ---------------------------------------------------------------------------

# Tests that stand beside those of integration and use their fixtures.
pytest = PYTHONPATH=tests/integration .venv/bin/python -m pytest -c tests/integration/pytest.ini -p conftest

test-upgrade: build/ckv.so | setup-server setup-python ## the last release's module and this one beside each other: replicas, clusters, files
	scripts/build_release.sh $(LAST_RELEASE)
	CKV_OLD_MODULE=$(CURDIR)/build/releases/$(LAST_RELEASE)/build/ckv.so $(pytest) tests/upgrade $(PYTEST_ARGS)

test-stress: build/ckv.so | setup-server setup-python ## a cluster under everything at once (CKV_SEED=7 CKV_SECONDS=15 REDIS_SERVER=)
	$(pytest) tests/stress $(PYTEST_ARGS)

test-fleet: build/ckv.so | setup-server setup-python ## a cluster of 12 nodes under load: a primary killed, two added, two removed (N=12000000 DATA=file)
	.venv/bin/python tests/fleet/fleet.py $(addprefix --records ,$(N)) $(addprefix --data ,$(DATA)) $(FLEET_ARGS)

test-migrations: build/ckv.so | setup-server setup-python ## atomic migrations of slots that are written, expire and are evicted meanwhile (N=200000 REDIS_SERVER=)
	.venv/bin/python tests/fleet/migrations.py $(addprefix --records ,$(N)) $(MIGRATIONS_ARGS)

# For another processor, in qemu's user mode. Undefined behaviour traps: no run-time library is needed.
ARM64_ROOT  = build/arm64/root
ARM64_CC    = aarch64-linux-gnu-gcc
ARM64_FLAGS = -O2 -g -fsanitize=undefined -fsanitize-undefined-trap-on-error
ARM64_LINK  = $(ARM64_CC) $(ARM64_FLAGS) -L$(ARM64_ROOT)/usr/lib/aarch64-linux-gnu
ARM64_RUN   = qemu-aarch64 -L $(ARM64_ROOT)
ARM64_UNIT  = $(patsubst %.c,build/arm64/%,$(filter-out tests/unit/estimate/%,$(UNIT_C)))
ARM64_FUZZ  = $(FUZZ_C:%.c=build/arm64/%)

test-arm64: $(ARM64_UNIT) $(ARM64_FUZZ) build/arm64/ckv.so build/arm64/redis-server build/ckv.so fuzz-short | setup-server setup-python ## unit tests, fuzz corpora and the module on arm64 (emulated); files to and from it
	@for test in $(ARM64_UNIT); do echo "== $$test"; $(ARM64_RUN) $$test || exit 1; done
	@for target in $(ARM64_FUZZ); do \
	    echo "== $$target"; \
	    find build/fuzz/corpus/$${target##*/fuzz_} -type f -print0 | xargs -0 $(ARM64_RUN) $$target || exit 1; \
	done
	CKV_ARM64_MODULE=$(CURDIR)/build/arm64/ckv.so CKV_ARM64_SERVER=$(CURDIR)/build/arm64/redis-server \
	    $(pytest) tests/arm64 $(PYTEST_ARGS)

$(ARM64_ROOT)/usr/bin/redis-server: | setup-arm64
	scripts/arm64_root.sh

build/arm64/redis-server: $(ARM64_ROOT)/usr/bin/redis-server
	printf '#!/bin/sh\nexec qemu-aarch64 -L %s %s "$$@"\n' $(CURDIR)/$(ARM64_ROOT) $(CURDIR)/$< >$@
	chmod +x $@

build/arm64/%.o: %.c Makefile | setup-build $(ARM64_ROOT)/usr/bin/redis-server
	@mkdir -p $(@D)
	$(call say,CC  )$(ARM64_CC) $(ALL_FLAGS) $(ARM64_FLAGS) -fPIC -fvisibility=hidden $(INCLUDES) -idirafter $(ARM64_ROOT)/usr/include -c -o $@ $<

build/arm64/ckv.so: $(MODULE_C:%.c=build/arm64/%.o)
	$(call say,LINK)$(ARM64_LINK) -shared -o $@ $^ $(LIBS)

build/arm64/tests/unit/%: build/arm64/tests/unit/%.o $(CORE_C:%.c=build/arm64/%.o)
	$(call say,LINK)$(ARM64_LINK) -o $@ $^ $(LIBS)

build/arm64/tests/fuzz/%: build/arm64/tests/fuzz/%.o build/arm64/tests/fuzz/replay.o build/arm64/tests/fuzz/shim.o $(MODULE_C:%.c=build/arm64/%.o)
	$(call say,LINK)$(ARM64_LINK) -o $@ $^ $(LIBS)

image: build/image/ckv-redis.tar build/image/ckv-valkey.tar ## images to try it with, left there (as root; BASE=debian:trixie-slim)

build/image/ckv-%.tar: $(wildcard image/* module/*.[ch] module/*/*.[ch] module/core/*/*.[ch]) | setup-build setup-image
	scripts/build_image.sh $*

test-image: image | setup-imagetest ## run them: settings, health, a kill and a restart on the same volume
	build/image-venv/bin/python -m pytest -c tests/integration/pytest.ini tests/image $(PYTEST_ARGS)

# --- cleaning -------------------------------------------------------------------------------------

clean: ## remove what was built, keep what was downloaded (build/deps, build/servers, .venv)
	rm -rf build/release build/releases build/asan build/tsan build/fuzz build/coverage build/ckv.so build/ckv-estimate build/ckv-bench build/bench-* build/filter.so build/redis-ckv_*.deb
	rm -rf build/arm64/module build/arm64/tests build/arm64/ckv.so build/image/*.tar
	rm -rf .pytest_cache .hypothesis
	find bench tests -name __pycache__ -prune -exec rm -rf {} +

distclean: clean ## remove that too
	rm -rf build .venv

-include $(shell find build -name "*.d" -not -path "build/servers/*" -not -path "build/deps/*" 2>/dev/null)
