# `make test` does all the set-up and passes all tests.

.PHONY: test test-all python wheel static recipe browser bench docs lint kernels licences audit fuzz package

REQUIREMENTS := crates/daimc-io/tests/python/requirements.txt

test: browser target/venv/ready
	cargo test --workspace --all-features
	$(MAKE) python

# With the ignored tests, which take minutes: studies on many more data, and kills at every rename.
test-all: test
	cargo test --workspace --all-features -- --ignored

# The Python package: the wheel is built as the tests are, and installed in a new virtual environment, and tested as it is
# installed.
# The program of the tests before is the one that its results are compared with.
PYTHON := target/python/bin/python
PROGRAM := $(or $(CARGO_TARGET_DIR),target)/debug/daimc
python: target/venv/ready
	rm -rf target/python target/wheels
	python3 -m venv target/python
	$(PYTHON) -m pip install --quiet --requirement crates/daimc-py/tests/requirements.txt
	$(PYTHON) -m maturin build --profile dev --features shared-build --quiet --manifest-path crates/daimc-py/Cargo.toml --out target/wheels
	$(PYTHON) -m pip install --quiet target/wheels/daimc-*.whl
	$(PYTHON) -m pip check
	test -x $(PROGRAM) || cargo build --workspace --all-features --bin daimc
	cd crates/daimc-py && DAIMC_CLI=$(abspath $(PROGRAM)) ../../$(PYTHON) -m pytest --quiet && \
		../../$(PYTHON) -m mypy --package daimc && \
		../../$(PYTHON) -m mypy tests/typed.py && \
		../../$(PYTHON) -m mypy.stubtest daimc._daimc

# The wheel that people install. It runs with glibc 2.28 and later, as RHEL 8 has: zig links against the symbols of that version,
# whatever is installed here. Then it is checked, installed into a new virtual environment, and used there.
# `make wheel TARGET=aarch64-unknown-linux-gnu` is for ARM, where Rust's standard library for that target is installed
# (`rustup target add`): the wheel is then checked but not used. This has not been tried yet.
TARGET ?= x86_64-unknown-linux-gnu
TOOLS := target/wheel-tools/bin
wheel: target/wheel-tools/ready
	rm -rf target/wheels-release
	PATH="$(abspath $(TOOLS)):$$PATH" maturin build --release --zig --compatibility manylinux_2_28 --target $(TARGET) \
		--manifest-path crates/daimc-py/Cargo.toml --out target/wheels-release
	$(TOOLS)/python packaging/check_wheel.py target/wheels-release/daimc-*.whl

# The program as one file that needs no libraries, for any Linux of the architecture, where Rust's standard library for MUSL is installed
# (`rustup target add`). ARM is aarch64-unknown-linux-musl. This has not been tried yet.
MUSL ?= x86_64-unknown-linux-musl
static: target/wheel-tools/ready
	PATH="$(abspath $(TOOLS)):$$PATH" cargo zigbuild --release --package daimc-cli --target $(MUSL)
	ls -l target/$(MUSL)/release/daimc

# The recipe for conda-forge and bioconda: parsed, and rendered for every platform.
recipe: target/wheel-tools/ready
	$(TOOLS)/python packaging/conda/check.py

target/wheel-tools/ready: packaging/requirements.txt
	python3 -m venv target/wheel-tools
	$(TOOLS)/pip install --quiet --requirement packaging/requirements.txt
	touch $@

# The libraries that write the files which the readers are tested on.
target/venv/ready: $(REQUIREMENTS)
	python3 -m venv target/venv || { test "$$(id -u)" = 0 && apt-get -q update && \
		apt-get -qy install --no-install-recommends python3-venv && python3 -m venv target/venv; }
	target/venv/bin/pip install --quiet --requirement $(REQUIREMENTS)
	touch $@

# Chromium, in which the report is tested: installed where that can be done without asking. Where it cannot, the test
# says that it was skipped.
browser:
	@test -n "$$CHROMIUM" || command -v chromium || command -v chromium-browser || command -v google-chrome || \
		{ test "$$(id -u)" = 0 && command -v apt-get && apt-get -q update && \
		apt-get -qy install --no-install-recommends chromium; } || \
		echo "no Chromium: the test of the report in a browser will be skipped"

bench:
	cargo bench -p daimc --features digit --bench roofline

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --all-features --no-deps

# Format, lints, and imports that point one way.
lint:
	python3 packaging/layers.py
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings

# Checks that the stored kernels are what their sources compile to. `kernels/compile.py` without --check compiles and stores them.
kernels: target/nvrtc/ready
	target/nvrtc/bin/python crates/daimc-cuda/kernels/compile.py --check

target/nvrtc/ready: crates/daimc-cuda/kernels/requirements.txt target/venv/ready
	python3 -m venv target/nvrtc
	target/nvrtc/bin/pip install --quiet --requirement $<
	touch $@

# Every published crate is packed, and built from what was packed, each against the others as they were packed.
# Cargo would take what it has unpacked, and built, of an earlier package of the same version.
package:
	rm -rf "$${CARGO_HOME:-$$HOME/.cargo}"/registry/src/-*/daimc* "$(or $(CARGO_TARGET_DIR),target)"/debug/.fingerprint/daimc*
	cargo package --workspace --exclude daimc-fuzz --exclude daimc-naive --exclude daimc-py --allow-dirty --quiet

# Mutated files through every reader: no panic, no abort, no hang, no memory that the file does not stand for. Those that are
# still read are compared with what numpy, scipy, pyarrow and pandas read. Built with the tests, so that
# nothing is built twice, and with their overflow checks.
SECONDS ?= 60
FUZZ := $(or $(CARGO_TARGET_DIR),target)/debug/daimc-fuzz
fuzz: target/venv/ready
	cargo test --workspace --all-features --no-run
	$(FUZZ) --seconds $(SECONDS) --findings target/fuzz-findings
	DAIMC_FUZZ_SECONDS=5 cargo test --workspace --all-features --bin daimc configurations -- --nocapture
	rm -rf target/fuzz-dump
	$(FUZZ) --seconds $(SECONDS) --cases 20000 --seed 1 --jobs 1 --findings target/fuzz-findings --dump target/fuzz-dump
	target/venv/bin/python crates/daimc-fuzz/compare.py target/fuzz-dump

# cargo-deny is built into target/tools the first time, where it is not installed.
DENY := PATH="$$PATH:$$PWD/target/tools/bin" cargo deny
licences: target/tools/deny
	$(DENY) check licenses bans sources

# Advisories about the crates we use. Their database is a repository of its own; where it cannot be fetched and no copy is
# there from before, this says that nothing was checked.
audit: target/tools/deny
	@if $(DENY) fetch db 2>/dev/null || test -n "$$(ls -d $(or $(CARGO_HOME),$$HOME/.cargo)/advisory-dbs/*/crates 2>/dev/null)"; \
		then $(DENY) check --disable-fetch advisories; \
		else echo "SKIPPED: no database of advisories: github.com/rustsec/advisory-db cannot be fetched from here"; fi

target/tools/deny:
	command -v cargo-deny >/dev/null || test -x target/tools/bin/cargo-deny || \
		cargo install cargo-deny --locked --version 0.20.2 --root target/tools --target-dir target/tools/build
	mkdir -p target/tools && touch $@
