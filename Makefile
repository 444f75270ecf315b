# The few commands a newcomer needs. Everything else is `cargo xtask`.

.PHONY: help demo test bench

help:
	@echo 'make demo    measure two hosts through a switch, and raw frames, in network namespaces of this machine'
	@echo 'make test    run the tests: those that run anywhere, then those in network namespaces'
	@echo 'make bench   compare linerate with the peers on one link'

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
