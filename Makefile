# The few commands a newcomer needs. Everything else is `cargo xtask`.

.PHONY: help demo test bench studies

help:
	@echo 'make demo    measure two hosts through a switch, and raw frames, in network namespaces of this machine'
	@echo 'make test    run the tests: those that run anywhere, then those in network namespaces'
	@echo 'make bench   compare linerate with the peers on one link'
	@echo 'make studies render the published studies into docs/studies'

demo:
	@scripts/install-packages.sh build
	cargo run --release -- lab

test:
	@scripts/install-packages.sh build test
	cargo xtask test
	cargo xtask test --lab

bench:
	@scripts/install-packages.sh build bench
	cargo xtask bench streams

studies:
	@scripts/install-packages.sh build
	cargo build --release
	for study in $$(grep -l '^data = ' studies/*.toml); do \
	    target/release/linerate report "$$study" --out "docs/studies/$$(basename "$$study" .toml).html" || exit 1; \
	done
