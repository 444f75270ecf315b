//! The container image: the program and nothing else, for all processors. OCI image layout, version 1.0
//! (image-spec: image-layout.md, image-index.md, manifest.md, config.md), packed as one archive.

use super::formats::tar;
use super::tree::Tree;
use super::{Release, sha256};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Folder of an agent's identity in a container. It is a volume, so that the agent's URL stays the same.
const IDENTITY: &str = "/var/lib/linerate-agent";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Writes `linerate-VERSION-oci.tar`.
pub(super) fn write(release: &Release, trees: &[Tree]) -> Result<PathBuf> {
    let name = format!("linerate-{}-oci", release.version);
    let layout = release.out.join(&name);
    if layout.exists() {
        fs::remove_dir_all(&layout).with_context(|| format!("removing {}", layout.display()))?;
    }
    let blobs = layout.join("blobs/sha256");
    fs::create_dir_all(&blobs).with_context(|| format!("making {}", blobs.display()))?;
    let manifests = trees.iter().map(|tree| manifest(release, tree, &blobs)).collect::<Result<Vec<_>>>()?;
    // One name for all processors: the layout's index has an index of the image, from which tools take the manifest
    // they need. podman takes this annotation for the image's name.
    let (digest, size) = keep_json(&index(json!(manifests)), release, &blobs)?;
    let index = index(json!([{
        "mediaType": INDEX,
        "digest": digest,
        "size": size,
        "annotations": { "org.opencontainers.image.ref.name": format!("linerate:{}", release.version) },
    }]));
    fs::write(layout.join("index.json"), index.to_string()).context("writing index.json of the image")?;
    fs::write(layout.join("oci-layout"), json!({ "imageLayoutVersion": "1.0.0" }).to_string())
        .context("writing oci-layout of the image")?;
    let to = release.out.join(format!("{name}.tar"));
    tar(release, &layout, ".", &to)?;
    fs::remove_dir_all(&layout).with_context(|| format!("removing {}", layout.display()))?;
    Ok(to)
}

fn index(manifests: Value) -> Value {
    json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests })
}

/// Writes layer, configuration and manifest of one processor. Returns the index's entry.
fn manifest(release: &Release, tree: &Tree, blobs: &Path) -> Result<Value> {
    let root = release.out.join("image");
    fs::create_dir_all(root.join(&IDENTITY[1..])).context("making the root of the image")?;
    fs::copy(tree.root.join(Tree::PROGRAM), root.join("linerate")).context("copying the program to the image")?;
    let layer = release.out.join("layer.tar");
    tar(release, &root, ".", &layer)?;
    fs::remove_dir_all(&root).context("removing the root of the image")?;
    // The layer's diff_id is the digest of its blob, because the blob is not compressed. Registries compress it.
    let (digest, size) = keep(&layer, blobs)?;
    let created = timestamp(release)?;
    let config = json!({
        "created": created,
        "architecture": tree.architecture.debian(),
        "os": "linux",
        "config": {
            "Entrypoint": ["/linerate"],
            "Cmd": ["serve", "--identity", IDENTITY],
            "ExposedPorts": { "4747/tcp": {} },
            "Volumes": { IDENTITY: {} },
            "Labels": {
                "org.opencontainers.image.title": "linerate",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": "Apache-2.0 OR MIT",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [digest] },
        "history": [{ "created": created, "created_by": "cargo xtask package" }],
    });
    let config = keep_json(&config, release, blobs)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": { "mediaType": "application/vnd.oci.image.config.v1+json", "digest": config.0, "size": config.1 },
        "layers": [{ "mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest, "size": size }],
    });
    let (digest, size) = keep_json(&manifest, release, blobs)?;
    Ok(json!({
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "digest": digest,
        "size": size,
        "platform": { "architecture": tree.architecture.debian(), "os": "linux" },
    }))
}

/// Moves a file to the blobs. Returns its digest and size.
fn keep(file: &Path, blobs: &Path) -> Result<(String, u64)> {
    let sum = sha256(file)?;
    let size = fs::metadata(file).with_context(|| format!("reading {}", file.display()))?.len();
    fs::rename(file, blobs.join(&sum)).with_context(|| format!("moving {}", file.display()))?;
    Ok((format!("sha256:{sum}"), size))
}

fn keep_json(value: &Value, release: &Release, blobs: &Path) -> Result<(String, u64)> {
    let file = release.out.join("blob.json");
    fs::write(&file, value.to_string()).with_context(|| format!("writing {}", file.display()))?;
    keep(&file, blobs)
}

/// Returns the time of the commit in the format of RFC 3339.
fn timestamp(release: &Release) -> Result<String> {
    let mut date = release.command("date");
    date.args(["--utc", &format!("--date=@{}", release.epoch), "+%Y-%m-%dT%H:%M:%SZ"]);
    Ok(crate::process::run(date, super::LIMIT)?.stdout.trim().to_owned())
}
