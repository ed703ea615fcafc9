# Everything that is run by hand or in CI. `make help` lists it.
SHELL := /bin/sh
GO ?= go
# One set of flags for all that is built, and no paths in it: the program, tests and vet share their compiled packages,
# other clones too. The command line library's writer of manual pages, which isn't used, is a quarter of a megabyte.
TAGS := urfave_cli_no_docs
export GOFLAGS := $(shell $(GO) env GOFLAGS) -trimpath -tags=$(TAGS)
# The race detector needs cgo.
export CGO_ENABLED := $(if $(RACE),1,0)
# With RACE=1 tests are built with the race detector; RACE=program also builds the
# program that they start with it, which takes several times as long. Tests of what
# is large, TestLarge*, are run without it, and so are those that only start the program. make lint vets.
GOTEST := $(if $(filter program,$(RACE)),DEPLOYER_TEST_RACE_PROGRAM=1 )$(GO) test -vet=off $(if $(RACE),-race -skip '^TestLarge')
# Random tests are the same each time, but for test-long, which draws a seed unless
# one is given: SEED=n.
SEED ?=
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.buildVersion=$(VERSION) -X main.buildCommit=$(shell git rev-parse HEAD 2>/dev/null)

.PHONY: cross unit test-shared test-devcluster test-skew test-browser test-clients guides help fuzz fuzz-quick build test-long test-alone test-node release demo cluster test lint bench golden clean devcluster helm3 helm4

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 12

build: ## bin/deployer
	@echo "building bin/deployer: two to five minutes the first time, later some seconds" >&2
	CGO_ENABLED=0 $(GO) build -ldflags '$(LDFLAGS)' -o bin/deployer ./cmd/deployer

release: ## dist/: binaries for linux, darwin and windows, with bills of materials, manual pages and checksums
	scripts/release.sh $(VERSION)

devcluster: ## bin/devcluster, a real Kubernetes for development and tests (KUBERNETES=v1.31.4: and a control plane of that version)
	@sh devcluster/build.sh bin/devcluster
	@$(if $(KUBERNETES),sh devcluster/kubernetes.sh $(KUBERNETES) bin/kubernetes-$(KUBERNETES))

helm3: ## bin/helm3/helm, the real Helm 3 that tests and benchmarks compare with
	@$(GO) test -count=1 -timeout 30m -run '^TestHelm3IsTheRelease$$' ./internal/helmtest

helm4: ## bin/helm4/helm, the real Helm 4 whose releases tests go on with
	@$(GO) test -count=1 -timeout 30m -run '^TestHelm4IsTheRelease$$' ./internal/helmtest

demo: build devcluster ## the story of a failed release and its rollback, on a cluster of its own
	@echo "starting a cluster, which takes a few seconds; then the story, about 30" >&2
	@bin/devcluster run -- sh scripts/demo.sh

cluster: build devcluster ## start a cluster and tell how to use it
	@sh scripts/cluster.sh up

unit: ## tests that need neither a cluster nor another program, in under a minute once built (RACE=1: with the race detector)
	$(GOTEST) -short -timeout 10m ./...

test: ## all tests but those of test-long, -node, -browser, -skew and -clients, against a real API server, in about 20 minutes on two cores (RACE=1: with the race detector; RERUN=1: failed ones once more)
	@echo "building what the tests start, then about 20 minutes on two cores; the packages that take longest run first, side by side" >&2
	@$(MAKE) --no-print-directory -j2 devcluster helm3 helm4
	@$(MAKE) --no-print-directory -j2 $(if $(RACE),test-unraced test-raced,test-shared) test-alone test-devcluster

# What takes longest begins first, and the other packages beside it.
LONGEST := ./internal/e2e ./cmd/deployer ./apply ./release ./track

# A line for each package that is done, failed tests as they fail, and all of them again at the end. With RERUN=1 up to
# ten failed tests are rerun, twice at most, and reported; a data race never is.
SUM := $(if $(filter program,$(RACE)),env DEPLOYER_TEST_RACE_PROGRAM=1 )$(GO) tool gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg $(if $(RERUN),--rerun-fails=2 --rerun-fails-max-failures=10 --rerun-fails-abort-on-data-race)
ON_CLUSTER := bin/devcluster run -- env DEPLOYER_TEST_REQUIRE_CLUSTER=1

test-shared: # those of make test that share a cluster
	$(ON_CLUSTER) $(SUM) --packages "$(LONGEST) ./..." -- -vet=off -timeout 60m

# Those without goroutines of ours: one only starts the program, the other is a pure function that makes keys for minutes.
NOT_RACED := ./internal/e2e ./chart/retain

test-raced: # those of test-shared that are run with the race detector
	$(ON_CLUSTER) $(SUM) --packages "$(filter-out $(NOT_RACED),$(LONGEST)) $(filter-out $(NOT_RACED:./%=deployer/%),$(shell $(GO) list ./...))" -- -vet=off -race -skip '^TestLarge' -timeout 60m

test-unraced: # and those that aren't, beside them
	$(ON_CLUSTER) env CGO_ENABLED=0 sh -c '$(SUM) --packages "$(NOT_RACED)" -- -vet=off -timeout 60m && $(SUM) --packages ./release -- -vet=off -timeout 10m -run "^TestLarge"'

test-alone: devcluster ## tests that disturb all others, on a cluster of their own
	$(ON_CLUSTER) env CGO_ENABLED=0 DEPLOYER_TEST_ALONE=1 $(SUM) --packages "./apply ./internal/e2e" -- -vet=off -count=1 -run '^TestAlone'

test-devcluster: # those of the development cluster itself, which start files that the cache of results ignores: they are outside of its module
	cd devcluster && CGO_ENABLED=0 $(GO) test -vet=off -count=1 -timeout 10m ./...

# The version before devcluster's, the oldest that is tested, and two in between.
SKEW ?= v1.36.3 v1.34.4 v1.31.4 v1.29.15

test-skew: ## apply, track and the built program against older API servers (SKEW="v1.31.4 …": these, RUN=TestX: only these tests)
	@for v in $(SKEW); do \
		$(MAKE) --no-print-directory devcluster KUBERNETES=$$v && \
		DEVCLUSTER_KUBERNETES=$$v bin/devcluster run --nodes 10 -- env DEPLOYER_TEST_REQUIRE_CLUSTER=1 $(GOTEST) -count=1 -timeout 60m $(if $(RUN),-run '$(RUN)') ./apply/... ./track/... ./internal/e2e || exit; \
	done

test-node: devcluster ## deployer on real pods: as root on Linux; installs containerd and such
	@sh scripts/test-node.sh $(SUM) --packages ./internal/nodetest -- -vet=off

test-browser: ## plans in a browser and in Graphviz; installs them if run as root on Debian
	@sh scripts/test-browser.sh $(SUM) --packages ./internal/view/... -- -vet=off

test-clients: build devcluster helm3 ## programs that call Helm (helm-diff, helmfile, chart-testing, kustomize, Ansible), with Helm and with us: the same output
	@sh scripts/test-clients.sh

lint: export CGO_ENABLED := 0
lint: ## gofmt, go vet, staticcheck, the import rules and known vulnerabilities, where their database can be reached
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) test -run '^TestImports$$' ./internal
	cd devcluster && $(GO) vet ./...
	@GO="$(GO)" sh scripts/vulncheck.sh

cross: ## build for other systems: macOS and Windows
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null ./cmd/deployer
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 $(GO) build -o /dev/null ./cmd/deployer

bench: build devcluster helm3 ## time, memory and requests against Helm 3 and the targets, in one run (N=1000: only that size, in sizes and takeover; ONLY=charts,far: only these sections)
	@bin/devcluster run --nodes 10 -- $(GO) run ./internal/bench $(if $(N),-n $(N)) $(if $(ONLY),-only $(ONLY))

# What make test samples, whole.
LONG := bin/devcluster run -- env DEPLOYER_TEST_REQUIRE_CLUSTER=1 DEPLOYER_TEST_LONG=1 $(GO) test -count=1

test-long: devcluster helm3 helm4 ## the random cases of make test, 200 of each (SEEDS=n: so many, SEED=n: the same again), all public charts with all programs, 10,000 pods tracked, runs killed, cut off and stopped at every call, and two at once at every call
	@seed=$(or $(SEED),$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')); \
	echo "random stories; to tell the same again: make test-long SEED=$$seed"; \
	bin/devcluster run -- env DEPLOYER_TEST_REQUIRE_CLUSTER=1 DEPLOYER_TEST_SEED=$$seed DEPLOYER_TEST_SEEDS=$(or $(SEEDS),200) $(GO) test -count=1 -timeout 180m -run '^(TestAsIfNew|TestOracle|TestBesideHelm3)$$' ./apply ./internal/e2e
	DEPLOYER_TEST_LONG=1 $(GO) test -count=1 -timeout 60m -run '^TestPasswordsStayWithTheirUsers$$' ./chart/retain
	$(LONG) -timeout 150m -run '^(TestScale|TestFailureClasses)$$' ./track
	$(LONG) -timeout 60m -run '^(TestPublicCharts|TestPublicChartsOfHelm4|TestPlansComeTrue|TestComparison|TestValuesAndLabelsOfAFailedRevision|TestMissingPermissionIsNamed)$$' ./internal/e2e
	$(LONG) -timeout 180m -run '^(TestKilledAtEveryCall|TestSignalAtEveryCall|TestUndoAtEveryCall|TestRunsOutlastFaultsOfHalfASecond)$$' ./internal/e2e
	$(LONG) -timeout 300m -run '^TestTwoAtOnceAtEveryCall$$' ./internal/e2e

FUZZ_PACKAGES = $(sort $(dir $(shell grep -rl '^func Fuzz' --include='*_test.go' .)))

fuzz: ## fuzz untrusted input (FUZZTIME=10m per target)
	@for p in $(FUZZ_PACKAGES); do for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
		$(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(or $(FUZZTIME),1m) $$p || exit 1; done || exit 1; done

# Without coverage as a guide, whose instrumented build of all dependencies takes minutes. Counted, because
# a target whose time is up while it works is called failed (https://github.com/golang/go/issues/75804).
fuzz-quick: ## a thousand inputs for each target of make fuzz (RACE=1: with the race detector)
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && failed=0; for p in $(FUZZ_PACKAGES); do \
		$(GO) test $(if $(RACE),-race) -c -o "$$dir/fuzz" $$p || exit 1; \
		for f in $$("$$dir/fuzz" -test.list '^Fuzz'); do echo "$$p $$f"; (cd $$p && "$$dir/fuzz" -test.run '^$$' -test.fuzz "^$$f$$" \
			-test.fuzztime 1000x -test.fuzzcachedir "$$dir/corpus" >"$$dir/log" 2>&1) || { cat "$$dir/log"; failed=1; }; done; done; exit $$failed

guides: devcluster helm3 ## rewrite what the guides show, and the picture of the README, from what the program does now
	bin/devcluster run -- $(GO) test -count=1 -run '^(TestGuides|TestSessionIsDrawn)$$' ./internal/e2e -update

golden: devcluster helm3 ## rewrite the golden files from what the program does now
	bin/devcluster run -- $(GO) test ./internal/view/plan ./internal/view/inspection ./internal/view/page ./internal/view/run ./cmd/deployer ./chart -update

clean: ## what was built
	rm -rf bin
