# The entry point of the build; meson and ninja do the work. Every kind of build has its own folder, build*/. Variables:
# PREFIX and DESTDIR for install; SUITES, CASES, ENGINES, SERVERS and TIMES for the tests; QUICK=1, ROUNDS and PEERS for
# the benchmarks; FUZZ and SECONDS for the fuzzer; CHAOS, SOAK, SEEDS and STEPS for the nightly run; PAWL_INSTALL=no to
# install no packages.

PREFIX  ?= /usr/local
SUITES  ?=
CASES   ?=
ENGINES ?=
SERVERS ?=
FUZZ    ?= http
SECONDS ?= 600
SOAK    ?= 300
ROUNDS  ?= 3
PEERS   ?=
CHAOS   ?= 210
SEEDS   ?= 1000
STEPS   ?=
TESTS   := -Dtests=true -Dhooks=true
MAKEFLAGS += --no-print-directory

.PHONY: all help setup setup-run setup-test setup-bench benches build-test build-clang run test check check-asan check-tsan coverage \
        bench bench-peers chaos fuzz soak nightly analyze tidy format install clean

all: setup ## build the library, the program and the samples into build/
	@tools/build.sh build

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

setup:
	@tools/setup.sh build

setup-run:
	@tools/setup.sh run

setup-test:
	@tools/setup.sh test

setup-bench:
	@tools/setup.sh bench

build-test: setup-test
	@tools/build.sh build-test $(TESTS)

build-clang: setup-test ## build everything with clang too, without optimization, for its warnings
	@CC=clang-14 tools/build.sh build-clang $(TESTS) -Doptimization=0 -Ddebug=false

run: setup-run all ## build and serve the samples on http://127.0.0.1:7295, with a database in run/
	@tools/run.sh build

test: all build-test ## install the packages for tests, build, run every suite
	@PAWL_ENGINES='$(ENGINES)' CASES='$(CASES)' tools/test-run.sh build-test $(SUITES)

check: all build-test ## run the tests that need no database server: a minute or two
	@PAWL_ENGINES='mem sqlite' CASES='$(CASES)' tools/test-run.sh build-test $(or $(SUITES),unit conform api race)

check-asan: setup-test ## run every suite with the address and undefined-behaviour sanitizers
	@tools/build.sh build-asan $(TESTS) -Db_sanitize=address,undefined
	@PAWL_CHECK_SCALE=3 PAWL_ENGINES='$(ENGINES)' SERVERS='$(SERVERS)' CASES='$(CASES)' \
	    tools/test-run.sh build-asan $(or $(SUITES),unit conform api race crash torture)

check-tsan: setup-test ## run the threaded suites with the thread sanitizer
	@tools/build.sh build-tsan $(TESTS) -Db_sanitize=thread
	@PAWL_CHECK_SCALE=10 CASES='$(CASES)' \
	    tools/test-run.sh build-tsan $(or $(SUITES),unit conform api race crash)

coverage: setup-test ## run the suites and print the line coverage of src/
	@tools/build.sh build-cov $(TESTS) -Db_coverage=true
	@find build-cov -name '*.gcda' -delete
	@PAWL_CHECK_SCALE=3 CASES='$(CASES)' \
	    tools/test-run.sh build-cov $(or $(SUITES),unit conform api race crash torture); status=$$?; \
	    cd build-cov && gcovr --root .. --filter '\.\./src/' --print-summary . && exit $$status

benches: setup-bench all
	@TARGETS=benches tools/build.sh build

bench: benches ## run every test/bench program, then bench-peers: over an hour; QUICK=1: half an hour
	@PAWL_BENCH_QUICK='$(QUICK)' tools/bench-run.sh build
	@$(MAKE) bench-peers

bench-peers: benches ## compare Pawl with its peers, into doc/benchmarks.md: QUICK=1 ROUNDS=3 PEERS="pawl dbos"
	@QUICK='$(QUICK)' ROUNDS='$(ROUNDS)' PEERS='$(PEERS)' tools/bench-peers.sh build build/bench-results.tsv
	@tools/bench-report.sh build/bench-results.tsv doc

fuzz: setup-test ## run one fuzz target: FUZZ=http SECONDS=600
	@tools/fuzz.sh $(FUZZ) $(SECONDS)

chaos: build-test ## run three nodes under load with many faults, 5 minutes at most: CHAOS=210 PAWL_SEED=n
	@PAWL_CHAOS_SECONDS=$(CHAOS) PAWL_ENGINES='$(ENGINES)' CASES='$(CASES)' tools/test-run.sh build-test chaos

soak: setup-test all ## run five minutes of load with connections that come and go: SOAK=300
	@tools/soak.sh $(SOAK) build

nightly: setup-test setup-bench ## run everything long, for hours: STEPS="analyze openapi long asan seeds tsan chaos soak fuzz"
	@CHAOS=$(CHAOS) SOAK=$(SOAK) FUZZ_SECONDS=$(SECONDS) SEEDS=$(SEEDS) tools/nightly.sh $(STEPS)

analyze: setup-test ## run clang --analyze, gcc -fanalyzer and cppcheck on the code
	@tools/analyze.sh

tidy: setup-test ## check format, rooms, headers, lengths, banned functions and words
	@tools/tidy.sh

format: setup-test ## format the C files
	@tools/format.sh

install: all ## install into PREFIX (/usr/local), below DESTDIR when set
	@tools/install.sh build '$(PREFIX)' '$(DESTDIR)'

clean: ## remove every build folder
	rm -rf build build-*
