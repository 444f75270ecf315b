//! Ways of a copy, and the tools compared on each. A way is an entry of [`WAYS`], a peer one of its tools.
//!
//! Scripts run in a shell inside a lab host with these variables: `TREE`, the folder to copy; `INTO`, the empty
//! destination; `TO` and `PORT`, the address and port of a server; and `SCRATCH`, a folder for their own files.
//! linerate's arguments may have them too.

use super::clients::Load;

/// One way of `linerate copy`.
pub(super) struct Way {
    pub(super) name: &'static str,
    /// Minimum speed of linerate with its default verification, as a multiple of the fastest peer's.
    pub(super) goal: f64,
    /// Tools, with linerate first.
    pub(super) tools: &'static [Tool],
}

/// A tool with the commands that its users would write.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) server: Option<Server>,
    pub(super) client: Client,
    /// Programs that it needs.
    pub(super) programs: &'static [&'static str],
}

/// Server at the receiving host during a copy.
pub(super) struct Server {
    pub(super) script: &'static str,
    /// Whether it ends by itself when all is written. Otherwise the client ends only after that.
    pub(super) ends: bool,
}

/// Command that copies.
pub(super) enum Client {
    /// Arguments of `linerate copy`, without those for the tree, caches and durability.
    Linerate(&'static str),
    /// Script at the sending host.
    Shell(&'static str),
}

const OURS: &str = "linerate copy";
const OURS_UNVERIFIED: &str = "linerate copy --verify none";

const fn linerate(name: &'static str, words: &'static str) -> Tool {
    Tool { name, server: None, client: Client::Linerate(words), programs: &[] }
}

/// A Samba server with one user and two shares: `into` to copy to, `tree` to copy from.
const SAMBA: Server = Server {
    script: r#"
S="$SCRATCH/samba"
mkdir -p "$S"
echo secret >"$S/password"
printf '%s\n' '[global]' 'server role = standalone server' "smb ports = $PORT" 'disable netbios = yes' 'load printers = no' \
    'printcap name = /dev/null' 'disable spoolss = yes' "passdb backend = tdbsam:$S/passdb.tdb" "log file = $S/log" \
    "private dir = $S" "state directory = $S" "cache directory = $S" "lock directory = $S" "pid directory = $S" \
    "ncalrpc dir = $S/ncalrpc" '[into]' "path = $INTO" 'read only = no' \
    '[tree]' "path = $TREE" 'read only = yes' >"$S/smb.conf"
printf 'secret\nsecret\n' | smbpasswd -c "$S/smb.conf" -s -a root
exec smbd --foreground --no-process-group --configfile "$S/smb.conf""#,
    ends: false,
};

/// linerate's copies to and from a Samba server, by one client and by three.
pub(super) const THROUGH_SAMBA: (Tool, [Load; 4]) = (
    linerate_smb(OURS, ""),
    [
        Load {
            clients: 1,
            they: "write",
            words: "a //$TO:$PORT/into --tree $TREE --over smb --user root --password-file $SCRATCH/samba/password",
        },
        Load {
            clients: 1,
            they: "read",
            words: "//$TO:$PORT/tree --to a --over smb --user root --password-file $SCRATCH/samba/password",
        },
        Load {
            clients: 3,
            they: "read",
            words: "//$TO:$PORT/tree --to a,c,d --over smb --user root --password-file $SCRATCH/samba/password",
        },
        Load {
            clients: 3,
            they: "write",
            words: "a,c,d //$TO:$PORT/into --tree $TREE --over smb --user root --password-file $SCRATCH/samba/password",
        },
    ],
);

/// nfs-ganesha with two exports, the tree and the destination, and the rpcbind that it registers with. Both use a
/// private /run, which disappears when they end.
const GANESHA: Server = Server {
    script: r#"
exec unshare --mount --pid --fork --kill-child --mount-proc sh -c '
set -e
mount -t tmpfs tmpfs /run
mkdir /run/rpcbind /run/ganesha
for EXPORT in "1 $TREE RO" "2 $INTO RW"; do
    set -- $EXPORT
    echo "EXPORT { Export_Id = $1; Path = $2; Pseudo = /$1; Filesystem_Id = $1.1; Protocols = 3; Transports = TCP;"
    echo "Access_Type = $3; Squash = No_Root_Squash; SecType = sys; FSAL { Name = VFS; } }"
done >/run/ganesha.conf
echo "NFS_CORE_PARAM { Protocols = 3; NFS_Port = $PORT; Enable_NLM = false; Enable_RQUOTA = false; }" >>/run/ganesha.conf
rpcbind -w -f &
until [ -S /run/rpcbind.sock ]; do sleep 0.01; done
exec ganesha.nfsd -F -f /run/ganesha.conf -L /run/log -p /run/ganesha.pid -N NIV_EVENT'"#,
    ends: false,
};

/// linerate's copies to and from another NFS server, by one client and by three.
pub(super) const THROUGH_GANESHA: (Tool, [Load; 3]) = (
    Tool { name: OURS, server: Some(GANESHA), client: Client::Linerate(""), programs: &["ganesha.nfsd"] },
    [
        Load { clients: 1, they: "read", words: "$TO:$TREE --to a --over nfs" },
        Load { clients: 3, they: "read", words: "$TO:$TREE --to a,c,d --over nfs" },
        Load { clients: 3, they: "write", words: "a,c,d $TO:$INTO/new --tree $TREE --over nfs" },
    ],
);

const fn linerate_smb(name: &'static str, words: &'static str) -> Tool {
    Tool { name, server: Some(SAMBA), client: Client::Linerate(words), programs: &["smbd"] }
}

/// Every way, in the order they run and are printed.
pub(super) const WAYS: &[Way] = &[
    Way {
        name: "linerate",
        goal: 1.0,
        tools: &[
            linerate(OURS, "a b --over linerate --into $INTO"),
            linerate(OURS_UNVERIFIED, "a b --over linerate --verify none --into $INTO"),
            Tool {
                name: "rsync --whole-file",
                server: Some(Server {
                    script: r#"
printf '%s\n' 'use chroot = no' 'uid = 0' 'gid = 0' '[into]' "path = $INTO" 'read only = no' >"$SCRATCH/rsyncd.conf"
exec rsync --daemon --no-detach --port "$PORT" --config "$SCRATCH/rsyncd.conf""#,
                    ends: false,
                }),
                client: Client::Shell(
                    r#"rsync --recursive --links --perms --times --whole-file "$TREE/" "rsync://$TO:$PORT/into/""#,
                ),
                programs: &["rsync"],
            },
            Tool {
                name: "tar | nc",
                server: Some(Server {
                    script: r#"nc.openbsd -d -l "$PORT" | tar -C "$INTO" --no-same-owner -xf -"#,
                    ends: true,
                }),
                client: Client::Shell(r#"tar -C "$TREE" -cf - . | nc.openbsd -N "$TO" "$PORT""#),
                programs: &["nc.openbsd", "tar"],
            },
        ],
    },
    Way {
        name: "path",
        goal: 1.0,
        tools: &[
            linerate(OURS, "a --over path --into $INTO"),
            linerate(OURS_UNVERIFIED, "a --over path --verify none --into $INTO"),
            Tool {
                name: "cp -r",
                server: None,
                client: Client::Shell(r#"cp -r "$TREE/." "$INTO""#),
                programs: &["cp"],
            },
        ],
    },
    Way {
        name: "smb",
        goal: 0.8,
        tools: &[
            linerate_smb(OURS, "a //$TO:$PORT/into --over smb --user root --password-file $SCRATCH/samba/password"),
            linerate_smb(
                OURS_UNVERIFIED,
                "a //$TO:$PORT/into --over smb --user root --password-file $SCRATCH/samba/password --verify none",
            ),
            Tool {
                name: "smbclient mput",
                server: Some(SAMBA),
                client: Client::Shell(
                    r#"smbclient "//$TO/into" -p "$PORT" -U root%secret -c "recurse; prompt; lcd $TREE; mput *" 2>&1"#,
                ),
                programs: &["smbd", "smbclient"],
            },
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_starts_with_linerate_and_default_verification() {
        for way in WAYS {
            let Client::Linerate(words) = way.tools[0].client else { panic!("{} begins with a peer", way.name) };
            assert!(words.contains(&format!("--over {}", way.name)) && !words.contains("verify"), "{words}");
            assert!(way.tools.iter().any(|tool| matches!(tool.client, Client::Shell(_))), "{} has no peer", way.name);
        }
    }
}
