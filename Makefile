SHELL := /bin/bash
PYTHON ?= python3
export PYTHON

RUN := scripts/run
INSTALLED := .venv/.installed

# The tests against a real S3 server can be left out where it cannot be built; scripts/check says so then.
SERVER := $(if $(filter 1,$(BUCKETCATALOG_SKIP_S3)),,minio-server)

.DEFAULT_GOAL := help
.PHONY: help setup demo test explore test-unit test-property test-s3 test-spark test-s3a lint format typecheck bench minio minio-stop minio-server pyspark-4.1 proto \
	proto-release clean

help: ## list the targets, one line each
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## .venv with everything in it (and Java there, if the machine has none); the others call it
	@scripts/setup-java

$(INSTALLED): pyproject.toml constraints.txt scripts/setup-python
	@scripts/setup-python
	@touch $@

demo: setup ## the main job on real input, start to end
	@$(RUN) examples/demo.sh

test: setup $(SERVER) pyspark-4.1 ## every check and test; the last line counts them
	@$(RUN) scripts/check

explore: setup ## the generated histories with random seeds, for as long as one likes (MINUTES=30, ONLY=everything)
	@$(RUN) python -m tests.explore $(if $(MINUTES),--minutes $(MINUTES)) $(foreach name,$(ONLY),--only $(name))

test-unit: setup ## the tests of single scenarios and of the documents (5 minutes on two cores)
	@$(RUN) scripts/check unit

test-property: setup ## the tests with generated inputs
	@$(RUN) scripts/check property

test-s3: setup $(SERVER) ## the tests against a real S3 server
	@$(RUN) scripts/check s3

test-spark: setup $(SERVER) pyspark-4.1 ## the tests that start Spark, on the newest PySpark and on 4.1
	@$(RUN) scripts/check spark spark-4.1

test-s3a: setup minio-server ## native reads by Spark's own file system for S3, which Spark fetches (660 MB)
	@$(RUN) scripts/check s3a

pyspark-4.1: setup
	@scripts/setup-pyspark-4.1

lint: setup ## style of the code and of the .proto files, and compatibility with the released format
	@$(RUN) scripts/check ruff-check ruff-format buf-lint buf-breaking

format: setup ## put the code into the style that lint asks for
	@$(RUN) ruff check --fix-only --quiet
	@$(RUN) ruff format --quiet

typecheck: setup ## mypy --strict
	@$(RUN) scripts/check mypy

bench: setup minio-server pyspark-4.1 ## benchmarks against the peers in one run: a table, and benchmarks/results.json
	@$(RUN) python -m benchmarks.run

minio: setup minio-server ## a MinIO server to try things on, with some objects in it; prints how to reach it
	@$(RUN) python -m minio.server start

minio-stop: ## end that server, and remove its data
	@$(RUN) python -m minio.server stop

# Builds the server unless the user's cache has it.
minio-server: setup
	@scripts/setup-minio

proto: setup ## generate the Python code of the .proto files
	@$(RUN) scripts/generate-proto

proto-release: setup ## declare the .proto files released: later ones must be compatible with them
	@$(RUN) buf build --exclude-source-info --output proto/released.binpb

clean: ## remove the environment, caches and everything built
	@test ! -e build/minio/server.json || $(MAKE) --no-print-directory minio-stop
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
