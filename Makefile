# Targets a person needs: run, run-verda, demo, test, lint, proto, lock; for proofs at full length, conformance, crowd,
# mutants, simulate, torture, defects, bench and soak. Everything lives in .venv and var/.
SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: run run-verda demo test conformance compatibility crowd mutants bench soak lint format proto proto-check lock clean setup

setup: $(STAMP)

# --require-hashes: nothing is installed that the lock file does not name byte for byte.
$(STAMP): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; set PYTHON=/path/to/python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

run: $(STAMP)
	@echo 'Once it is ready, in another terminal: $(BIN)/python examples/scale.py up gpu-workers 3'
	@$(BIN)/verda-cloud-provider serve --config examples/config.yaml --with-simulator 127.0.0.1:8090

# The real API, and real money: only with credentials, and with a database of its own.
run-verda: $(STAMP)
	@test -n "$$VERDA_CLIENT_ID" || (echo 'make run-verda rents real machines: set VERDA_CLIENT_ID and VERDA_CLIENT_SECRET' >&2; exit 2)
	@$(BIN)/verda-cloud-provider serve --config examples/config.yaml --database var/verda.db

demo: $(STAMP)
	@$(BIN)/verda-cloud-provider demo

test: $(STAMP)
	@$(BIN)/python -m pytest -n auto

# Ours, or with ADDRESS=host:port GROUP=name anybody's: then it rents up to three machines at a time in that group.
conformance: $(STAMP)
	@$(BIN)/python -m pytest tests/conformance $(if $(ADDRESS)$(GROUP),-n 0 --timeout 900 --address '$(ADDRESS)' --group '$(GROUP)',-n 2)

# docs/compatibility.md, from a run of the whole suite.
compatibility: $(STAMP)
	@$(BIN)/python -m pytest tests/conformance -n 2 --compatibility docs/compatibility.md

# Fifty clients of all generations at one group for half a minute.
crowd: $(STAMP)
	@$(BIN)/python -m tests.conformance.crowd

# Every figure of performance as a ratio to something measured in the same run; most of an hour.
bench: $(STAMP)
	@$(BIN)/python -m bench

# A busy fleet for half an hour: memory, latency and the write-ahead log must stay flat, and all must agree in the end.
MINUTES ?= 30
soak: $(STAMP)
	@$(BIN)/python -m bench.soak --minutes $(MINUTES)

# docs/conformance-mutants.md: does the conformance suite notice when a rule is broken? Most of an hour.
mutants: $(STAMP)
	@$(BIN)/python -m tests.conformance.mutants

# N stories of the whole provider on a simulated cloud, clock and disk, or the one of a SEED told step by step.
N ?= 100
simulate: $(STAMP)
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(N))

# The real process on a real file against the simulator over HTTP, killed so often at random instants.
KILLS ?= 100
torture: $(STAMP)
	@$(BIN)/python -m tests.torture --kills $(KILLS)

# Every deliberate defect until a story notices it; takes minutes.
defects: $(STAMP)
	@$(BIN)/python -m tests.simulation --seeds 500 --defects > docs/simulation-defects.md

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/deptry .

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Several architectures need a buildx builder and a registry to push to: make image PLATFORMS=linux/amd64,linux/arm64 IMAGE=… PUSH=1
IMAGE ?= verda-cloud-provider:0.1.0
PLATFORMS ?=
image:
	docker buildx build -f deploy/Dockerfile -t $(IMAGE) $(if $(PLATFORMS),--platform $(PLATFORMS)) $(if $(PUSH),--push --sbom=true --provenance=true) .

# What the image holds, as CycloneDX. The tool is fetched for the occasion; it is no part of the project.
sbom: $(STAMP)
	@mkdir -p dist
	$(BIN)/uv tool run --from cyclonedx-bom==7.5.0 cyclonedx-py requirements --pyproject pyproject.toml --of JSON -o dist/sbom.cdx.json requirements.lock

# The virtual path mapping makes protoc write `from app.rpc.gen import ...`, so the output needs no patching.
proto: $(STAMP)
	$(BIN)/python -m grpc_tools.protoc -Iapp/rpc/gen=proto --python_out=. --pyi_out=. --grpc_python_out=. proto/expander.proto proto/externalgrpc.proto proto/kubernetes.proto

proto-check: proto
	@git diff --exit-code --stat -- app/rpc/gen || (echo 'app/rpc/gen differs from proto/: run `make proto` and commit' >&2; exit 1)

lock: $(STAMP)
	$(BIN)/uv pip compile -q --universal --generate-hashes --no-annotate --custom-compile-command 'make lock' pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --universal --generate-hashes --no-annotate --custom-compile-command 'make lock' --group dev -c requirements.lock pyproject.toml -o requirements-dev.lock
	$(BIN)/uv pip compile -q --universal --generate-hashes --no-annotate --custom-compile-command 'make lock' --group build -c requirements-dev.lock -o requirements-build.lock

clean:
	rm -rf $(VENV) var .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
