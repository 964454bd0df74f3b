# `make test` does all the set-up and passes all tests.

.PHONY: test browser bench docs lint licences

REQUIREMENTS := crates/daimc-io/tests/python/requirements.txt

test: browser target/venv/ready
	cargo test --workspace --all-features

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

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings

# cargo-deny is built into target/tools the first time, where it is not installed.
licences:
	command -v cargo-deny >/dev/null || test -x target/tools/bin/cargo-deny || \
		cargo install cargo-deny --locked --version 0.20.2 --root target/tools --target-dir target/tools/build
	PATH="$$PATH:$$PWD/target/tools/bin" cargo deny check licenses bans sources
