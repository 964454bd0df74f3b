# `make test` does all the set-up and passes all tests.

.PHONY: test bench docs lint licences

test:
	cargo test --workspace --all-features

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
