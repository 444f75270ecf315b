# The few commands a newcomer needs. Everything else is `cargo xtask`.

.PHONY: help demo fleet test bench studies

help:
	@echo 'make demo    measure two hosts through a switch, and raw frames, in network namespaces of this machine'
	@echo 'make fleet   run a fleet of 12 agents at 4 sites in network namespaces, with NATS, PostgreSQL and Prometheus'
	@echo 'make test    run the tests: those that run anywhere, then those in network namespaces'
	@echo 'make studies render the published studies as pages in docs/studies'
	@echo 'make bench   compare linerate with the peers on one link'

demo:
	@scripts/install-packages.sh build
	cargo run --release --no-default-features -- lab

fleet:
	@scripts/install-packages.sh build fleet
	cargo xtask fleet

test:
	@scripts/install-packages.sh build test
	cargo xtask test
	cargo xtask test --lab

studies:
	@scripts/install-packages.sh build
	@for study in studies/*-[0-9][0-9][0-9][0-9].toml; do \
		cargo run --quiet --release -- --lang en report "$$study" --out "docs/studies/$$(basename "$$study" .toml).html" >/dev/null || exit 1; \
	done

bench:
	@scripts/install-packages.sh build bench
	cargo xtask bench streams
