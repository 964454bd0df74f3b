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

# Needs cargo-deny (cargo install cargo-deny --locked).
licences:
	cargo deny check licenses bans sources
