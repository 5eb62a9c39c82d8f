# `make` prints the targets. Each target sets up what it needs: .venv/, .tools/, the jar.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
JAR := sparklog/jars/sparklog.jar
WHEEL := dist/sparklog-$(VERSION)-py3-none-any.whl
KAFKA := .tools/kafka/.copied
SPARK_KAFKA := .tools/spark-kafka/.copied
DELTA := .tools/delta/.copied
AXE := .tools/axe/.copied
HDFS := .tools/hdfs/.copied
S3A := .tools/s3a/.copied
SERVE_JARS := jvm-shim/serve/sparklog_serve/jars/.copied
SERVE_WHEEL := dist/sparklog_serve-$(VERSION)-py3-none-any.whl
STORES_JARS := jvm-shim/serve/stores/.copied
STORES_WHEEL := dist/sparklog_serve_stores-$(VERSION)-py3-none-any.whl
VERSITYGW := .tools/versitygw/versitygw
STREAMS := .tools/streams/.copied
GO_CLIENTS := .tools/go-clients/go-clients
KASKADE := .tools/kaskade/.installed
# What the slow tests need, and others do not. Go is not on each machine.
SLOW := $(STREAMS) $(KASKADE) $(if $(shell command -v go),$(GO_CLIENTS))
ARCHIVE := .tools/spark.jsa
VENV := .venv/.installed
PY := .venv/bin/python
# What builds a wheel, 30 MB: a user needs nothing else of .venv/.
BUILD := .tools/build/.installed
MVN ?= mvn -q -B
# Maven 3.8 ends with the escape that resets colours, also where its output is a file.
export MAVEN_OPTS := $(MAVEN_OPTS) -Djansi.noreset=true
FORMATTER := $(MVN) -f jvm-shim/pom.xml -N net.revelc.code.formatter:formatter-maven-plugin
JAVA := $(if $(JAVA_HOME),$(JAVA_HOME)/bin/java,java)
# The first Python that is new enough; `make PYTHON=…` names another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do \
  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then echo $$python; break; fi; done)
# Arguments for pytest: make test ARGS="-k session"
ARGS ?=

.PHONY: help
help: ## this list
	@echo "sparklog $(VERSION): a partitioned log for Spark that needs no server"
	@echo
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{printf "%-20s%s\n", $$1, $$2}'
	@echo
	@echo "Requirements: Python 3.10 or later, a JDK 17 or later, and Maven. Tests that need a browser are skipped where there is none."

## What a user wants

.PHONY: demo
demo: toolchain $(VENV) $(JAR) $(KAFKA) ## write 336,776 real events into a log, read and stream them, check them with Kafka's tools
	@$(PY) -m bench.demo demo-root --kafka $(dir $(KAFKA))

.PHONY: wheel
wheel: $(WHEEL) $(SERVE_WHEEL) $(STORES_WHEEL) ## build the wheel, with the jar inside, and the two wheels of the jars of `sparklog serve`, in dist/

.PHONY: release
release: toolchain $(VENV) ## check that the checkout can be released, build the wheel, and test it in empty environments; it uploads nothing
	@$(PY) tests/release.py

## What a developer wants

# What all tests need.
.PHONY: ready
ready: toolchain packages $(VENV) $(JAR) $(SERVE_JARS) $(WHEEL) $(SERVE_WHEEL) $(STORES_WHEEL) $(KAFKA) $(SPARK_KAFKA) $(DELTA) $(AXE) $(ARCHIVE)
	@$(MVN) -f jvm-shim/pom.xml test-compile

.PHONY: test
test: ready ## run the tests that a change needs, in 13 to 15 minutes: Java beside Python, with Spark, Delta and Kafka's tools
	@$(PY) tests/run_all.py quick $(ARGS)

.PHONY: test-slow
test-slow: ready $(SLOW) ## run the tests that are marked slow: what make full runs beside make test
	@$(PY) tests/run_all.py slow $(ARGS)

.PHONY: full
full: ready $(SLOW) ## run all tests but the soak, in 45 minutes: those of make test and make test-slow in one run
	@$(PY) tests/run_all.py full $(ARGS)

.PHONY: packages
packages: ## as root on Debian or Ubuntu: install a browser and what makes file systems, for the tests that need them
	@$(PYTHON) tests/machine.py

.PHONY: check
check: lint ## lint, and unit tests, without Spark: under a minute
	@$(PY) -m pytest -q -m "not slow and not soak" tests/unit tests/test_tidy.py tests/test_layers.py $(ARGS)

.PHONY: lint
lint: toolchain $(VENV) ## format, lint and types of Python and Java
	@$(PY) -m ruff format --check --quiet . || { echo "Some Python files are not formatted: run make format."; exit 1; }
	@$(FORMATTER):validate > /dev/null || { echo "Some Java files are not formatted: run make format."; exit 1; }
	@$(PY) -m ruff check --quiet .
	@$(PY) -m mypy sparklog bench docs

.PHONY: format
format: toolchain $(VENV) ## format Python and Java, and fix what the linter can fix
	@$(PY) -m ruff format --quiet .
	@$(PY) -m ruff check --quiet --fix .
	@$(FORMATTER):format

.PHONY: jar
jar: $(JAR) ## build the jars of the connector and the server, and put that of the connector where the Python package looks for it

# Arguments for Maven: make jvm-test JVM_ARGS=-Dtest=StateTest
JVM_ARGS ?=
REPORTS := jvm-shim/target/surefire-reports
# Tests of the server run also after tests of the connector have failed, so their reports decide.
ALL_TESTS := -Dmaven.test.failure.ignore -Dsurefire.failIfNoSpecifiedTests=false

.PHONY: jvm-test
jvm-test: toolchain ## run the Java tests only
	@echo "Running the Java tests"
	@rm -rf $(REPORTS)
	@begun=$$(date +%s); $(MVN) -f jvm-shim/pom.xml test $(ALL_TESTS) $(JVM_ARGS); \
	  [ -d $(REPORTS) ] || { echo "No Java test ran: $(JVM_ARGS)"; exit 1; }; \
	  sed -n 's/.*<testsuite .* tests="\([0-9]*\)" errors="\([0-9]*\)" .* failures="\([0-9]*\)".*/\1 \2 \3/p' $(REPORTS)/*.xml \
	  | awk -v seconds=$$(($$(date +%s) - begun)) '{ tests += $$1; failed += $$2 + $$3 } \
	    END { print tests " Java tests " (failed ? "ran, of which " failed " failed," : "passed") " in " seconds " s"; exit failed > 0 }'

.PHONY: kafka
kafka: $(KAFKA) $(SPARK_KAFKA) ## fetch Kafka's broker and tools, and Spark's Kafka connector, which the demo and the tests use

.PHONY: serve-jars
serve-jars: $(SERVE_JARS) ## build the jar of `sparklog serve`, beside the jars of Kafka that the server needs

.PHONY: streams
streams: $(STREAMS) ## fetch Kafka Streams and Kafka Connect, which the tests run at a server

.PHONY: go-clients
go-clients: $(GO_CLIENTS) ## build a program in Go with clients of Kafka, which the tests run at a server

.PHONY: kaskade
kaskade: $(KASKADE) ## install Kaskade, a page of Kafka in a terminal, which the tests open at a server

.PHONY: kafka-python-suite
kafka-python-suite: toolchain $(VENV) $(JAR) $(SERVE_JARS) ## run the integration tests of kafka-python at a server
	@PYTHONPATH=. $(PY) tests/serve/kafka_python_suite.py

.PHONY: hdfs
hdfs: $(HDFS) ## fetch HDFS, which the tests of stores start

.PHONY: s3
s3: $(S3A) $(if $(shell command -v go),$(VERSITYGW)) ## fetch Hadoop's S3A, and an S3 server, which Go builds
	@[ -x $(VERSITYGW) ] || echo "Go is missing: the tests of stores skip S3 (Debian: apt-get install golang)."

.PHONY: cluster
cluster: toolchain $(VENV) hdfs s3 ## run HDFS, S3 and a Spark cluster on this machine until Ctrl+C, and say where they are
	@PYTHONPATH=tests $(PY) -m stores.serve hdfs s3 spark

.PHONY: test-stores
test-stores: toolchain $(VENV) $(JAR) $(SERVE_JARS) $(STORES_JARS) hdfs s3 ## run the tests of stores, with HDFS, S3 and a Spark cluster on this machine
	@$(MVN) -f jvm-shim/pom.xml test-compile
	@$(PY) -m pytest tests/stores --numprocesses 2 --dist loadscope --no-loadscope-reorder $(ARGS)

.PHONY: soak-stores
soak-stores: toolchain $(VENV) $(JAR) $(SERVE_JARS) $(STORES_JARS) hdfs s3 ## run the long tests of stores: races of processes, and kills at every step
	@$(MVN) -f jvm-shim/pom.xml test-compile
	@$(PY) -m pytest tests/stores -m soak -s --timeout 7200 $(ARGS)

.PHONY: constraints
constraints: $(VENV) ## renew tests/constraints.txt: the newest packages, for each Python that is supported; then run make test
	@[ -x .tools/uv/bin/uv ] || $(PY) -m pip install --quiet --disable-pip-version-check --target .tools/uv uv
	@.tools/uv/bin/uv pip compile --quiet --native-tls --upgrade --universal --python-version 3.10 --extra dev \
	  --no-header --no-annotate --output-file tests/constraints.txt pyproject.toml

.PHONY: docs
docs: $(VENV) ## generate docs/reference/ and the table in docs/guide/from-kafka.md from sparklog/spec/, and draw docs/figures/
	@PYTHONPATH=. $(PY) docs/make_reference.py
	@$(PY) docs/make_figures.py

.PHONY: site
site: $(VENV) ## build the documentation as a site, in build/site/
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --config-file docs/site/mkdocs.yml

.PHONY: bench
bench: toolchain $(VENV) $(JAR) $(DELTA) $(KAFKA) ## run the benchmarks, beside Parquet and Delta in the same process
	@$(PY) -m bench

.PHONY: bench-stores
bench-stores: toolchain $(VENV) $(JAR) $(DELTA) hdfs s3 ## run the benchmarks of roots in HDFS and S3, whose servers run on this machine
	@PYTHONPATH=tests:. $(PY) -m stores.serve hdfs s3 -- $(PY) -m bench stores index-write index-read index-scan \
	  distance-python distance-spark distance-streams distance-bytes distance-server $(ARGS)

.PHONY: bench-distance
bench-distance: toolchain $(VENV) $(JAR) $(DELTA) hdfs s3 ## compare calls at 30 ms a request with their floors; some of them: make bench-distance ARGS="--only Consumer --discard"
	@PYTHONPATH=tests:. $(PY) -m stores.serve hdfs s3 -- $(PY) -m bench distance-python distance-spark distance-streams distance-bytes distance-server \
	  --delays 30 $(ARGS)

.PHONY: soak
soak: export SPARKLOG_SEED ?= new
soak: export PYTEST_DEBUG_TEMPROOT ?= $(or $(TMPDIR),/tmp)
soak: export SPARKLOG_SEEDS = $(or $(SEEDS),50000)
soak: toolchain $(VENV) $(JAR) $(SERVE_JARS) $(WHEEL) $(SERVE_WHEEL) $(STORES_WHEEL) $(KAFKA) $(SPARK_KAFKA) $(DELTA) $(AXE) $(ARCHIVE) ## run make full with new seeds, then the long tests; both simulations over so many: make soak SEEDS=1000000
	@$(MAKE) --no-print-directory full
	@$(MAKE) --no-print-directory sim SEEDS=$(SPARKLOG_SEEDS)
	@$(PY) -m pytest -m soak --timeout 7200 $(ARGS)
	@$(MAKE) --no-print-directory soak-stores

# As many seeds as are asked for take longer than a test may.
SIMULATE := $(MVN) -f jvm-shim/connector.xml test -Dsurefire.failIfNoSpecifiedTests=false -Dcompilers=-XX:+TieredCompilation -Djunit.jupiter.execution.timeout.mode=disabled

.PHONY: sim
sim: toolchain ## simulate the log in each place, and served, over many seeds: make sim SEEDS=100000; replay one: make sim SEED=17 PLACE=FAR; one with servers: make sim SEED=17 SERVED=1
	@$(SIMULATE) -Dtest='SimulationTest#$(if $(SERVED),theInvariantsHoldForServers,theInvariantsHold$(if $(SEED),,+theInvariantsHoldForServers))' $(if $(SEED),-Dsim.seed=$(SEED)) $(if $(PLACE),-Dsim.place=$(PLACE)) -Dsim.seeds=$(or $(SEEDS),10000)

.PHONY: sim-mutants
sim-mutants: toolchain ## how many seeds the simulation takes to find each broken rule
	@$(SIMULATE) -Dtest='SimulationTest#seedsToFindEachBrokenRule' -Dsim.rounds=$(or $(ROUNDS),11) -Dsim.seeds=$(or $(SEEDS),5000)

.PHONY: clean
clean: ## remove build output; keep .venv/ and .tools/
	@rm -rf dist build demo-root jvm-shim/target jvm-shim/serve/target sparklog/jars .pytest_cache .mypy_cache .ruff_cache .hypothesis

## What the targets depend on

.PHONY: toolchain
toolchain:
	@[ -n "$$(command -v '$(JAVA)')" ] || { echo "Java is missing: install a JDK 17 or later (Debian: apt-get install openjdk-17-jdk-headless)."; exit 1; }
	@version=$$('$(JAVA)' -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p'); \
	  [ "$${version:-0}" -ge 17 ] || { echo "Java is too old: $(JAVA) has version $${version:-unknown}; a JDK 17 or later is needed. Set JAVA_HOME to use another."; exit 1; }
	@[ -n "$$(command -v '$(JAVA)c')" ] || { echo "Java has a runtime but not a compiler: install a JDK 17 or later (Debian: apt-get install openjdk-17-jdk-headless)."; exit 1; }
	@[ -n "$$(command -v $(firstword $(MVN)))" ] || { echo "Maven is missing: install it (Debian: apt-get install maven)."; exit 1; }

# A virtual environment in the folder $(1).
define environment
	@[ -n "$(PYTHON)" ] || { echo "Python is missing or too old: install 3.10 or later, or name one: make PYTHON=…"; exit 1; }
	@[ -x $(1)/bin/python ] || { echo "Setting up $(1) with $$($(PYTHON) --version)"; \
	  $(PYTHON) -m venv $(1) || { rm -rf $(1); echo "$(PYTHON) cannot make a virtual environment (Debian: apt-get install python3-venv)."; exit 1; }; }
endef

$(BUILD): tests/constraints.txt
	$(call environment,$(@D))
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $< build hatchling
	@touch $@

$(VENV): pyproject.toml jvm-shim/serve/pyproject.toml tests/constraints.txt
	$(call environment,$(@D))
	@echo "Installing PySpark and what the tests need (1.9 GB; about 500 MB to download the first time)"
	@$(PY) -m pip install --quiet --disable-pip-version-check --use-pep517 --constraint tests/constraints.txt --editable '.[dev]' --editable jvm-shim/serve
	@touch $@

# Folders are prerequisites too, so that removing a file rebuilds the jar.
$(JAR): jvm-shim/pom.xml jvm-shim/connector.xml jvm-shim/serve/pom.xml $(shell find jvm-shim/src/main jvm-shim/serve/src/main sparklog/spec) | toolchain
	@echo "Building the jars (the first time, Maven downloads what it needs)"
	@rm -rf jvm-shim/serve/target/jars
	@$(MVN) -f jvm-shim/pom.xml -Dmaven.test.skip=true package
	@mkdir -p $(@D)
	@cp jvm-shim/target/sparklog.jar $@

$(WHEEL): pyproject.toml README.md LICENSE $(JAR) $(shell find sparklog -name '*.py' -o -name '*.json' -o -name py.typed -o -path '*/web/*') | $(BUILD)
	@rm -f dist/sparklog-*
	@$(dir $(BUILD))bin/python -m build --wheel --no-isolation --outdir dist . > /dev/null
	@echo "Built $@"

$(SERVE_JARS): $(JAR)
	@rm -rf $(@D) && mkdir -p $(@D)
	@cp jvm-shim/serve/target/jars/*.jar jvm-shim/serve/target/sparklog-serve.jar $(@D)
	@touch $@

# Not beside the jars, since that folder is in the wheel as it is.
$(STORES_JARS): jvm-shim/serve/stores/pom.xml | toolchain
	@echo "Fetching Hadoop's clients of HDFS and S3 (65 MB)"
	@rm -rf jvm-shim/serve/sparklog_serve/stores
	@$(MVN) -f $< dependency:copy-dependencies
	@touch $@

$(SERVE_WHEEL): jvm-shim/serve/pyproject.toml jvm-shim/serve/sparklog_serve/__init__.py jvm-shim/serve/NOTICE LICENSE $(SERVE_JARS)
$(STORES_WHEEL): jvm-shim/serve/stores/pyproject.toml jvm-shim/serve/stores/NOTICE LICENSE $(STORES_JARS)
$(SERVE_WHEEL) $(STORES_WHEEL): | $(BUILD)
	@rm -f $(@D)/$(firstword $(subst -, ,$(@F)))-*
	@cp LICENSE $(<D)/LICENSE
	@$(dir $(BUILD))bin/python -m build --wheel --no-isolation --outdir dist $(<D) > /dev/null
	@echo "Built $@"

$(KAFKA): NAME := Kafka's tools
$(KAFKA): tests/kafka/pom.xml
$(SPARK_KAFKA): NAME := Spark's Kafka connector
$(SPARK_KAFKA): tests/kafka/spark-pom.xml
$(DELTA): NAME := Delta
$(DELTA): bench/pom.xml
$(AXE): NAME := axe-core
$(AXE): tests/ui/pom.xml
$(HDFS): NAME := HDFS
$(HDFS): tests/stores/hdfs-pom.xml
$(STREAMS): NAME := Kafka Streams and Kafka Connect (105 MB)
$(STREAMS): tests/serve/streams-pom.xml
$(S3A): NAME := Hadoop's S3A (690 MB)
$(S3A): tests/stores/s3a-pom.xml
$(KAFKA) $(SPARK_KAFKA) $(DELTA) $(AXE) $(HDFS) $(STREAMS) $(S3A): | toolchain
	@echo "Fetching $(NAME)"
	@rm -rf $(@D)
	@$(MVN) -f $< dependency:copy-dependencies
	@touch $@

$(KASKADE): tests/serve/kaskade.txt | $(VENV)
	@echo "Installing Kaskade (180 MB)"
	@rm -rf $(@D)
	@$(PY) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# Go's own folder is as large as what it builds is small.
$(VERSITYGW): VERSION_OF_VERSITYGW := v1.8.0
$(VERSITYGW):
	@echo "Building versitygw, an S3 server (some minutes the first time)"
	@rm -rf $(@D)
	@mkdir -p $(@D)
	@GOBIN=$(CURDIR)/$(@D) GOPATH=$(CURDIR)/$(@D)/go go install -modcacherw -trimpath \
	  github.com/versity/versitygw/cmd/versitygw@$(VERSION_OF_VERSITYGW) > $@.log 2>&1 || { cat $@.log; exit 1; }
	@rm -rf $(@D)/go

$(GO_CLIENTS): tests/serve/go/go.mod tests/serve/go/go.sum $(wildcard tests/serve/go/*.go)
	@echo "Building Kafka's clients in Go (some minutes the first time)"
	@rm -rf $(@D)
	@mkdir -p $(@D)
	@cd tests/serve/go && GOPATH=$(CURDIR)/$(@D)/go timeout 600 go build -modcacherw -trimpath -o $(CURDIR)/$@ . > $(CURDIR)/$@.log 2>&1 \
	  || { cat $(CURDIR)/$@.log; echo "The clients in Go are not built, so their tests do not run."; }
	@rm -rf $(@D)/go

# A Spark that a test starts takes the classes of its first use from an archive. The JVM ignores one that does not fit.
# The pipe ends when the JVM does, which writes the archive after Python has ended.
$(ARCHIVE): tests/spark/first_use.py $(VENV) | $(JAR)
	@echo "Archiving the classes of Spark's first use"
	@rm -rf $@ .tools/first-use && mkdir -p .tools/first-use
	@JAVA_TOOL_OPTIONS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ArchiveClassesAtExit=$(CURDIR)/$@" \
	  $(PY) $< .tools/first-use 2>&1 | cat > .tools/first-use.log || { cat .tools/first-use.log; exit 1; }
