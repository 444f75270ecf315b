//! Checks of the Helm chart and the dashboards in packaging/, by the Go types of those who read them. Offline of any cluster; Go fetches
//! the modules from its proxy.

use crate::process::{CommandFailed, Output, run};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Time for Go to fetch and compile a program.
const COMPILE: Duration = Duration::from_secs(1_800);

/// Time for a check.
const CHECK: Duration = Duration::from_secs(120);

/// Helm, as `go install` takes it.
const HELM: &str = "helm.sh/helm/v3/cmd/helm@v3.22.0";

const CHART: &str = "packaging/kubernetes/linerate";
const PROGRAM: &str = "packaging/check";
const DASHBOARDS: &str = "packaging/grafana";

/// Manifests of the default values, for those who do not use Helm.
const MANIFESTS: &str = "packaging/kubernetes/linerate.yaml";

/// Release and namespace of rendered manifests.
const RELEASE: [&str; 3] = ["linerate", "--namespace", "linerate"];

/// Checks of the chart.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Write packaging/kubernetes/linerate.yaml anew instead of comparing it.
    #[arg(long)]
    write: bool,
}

/// An installation whose manifests must be valid.
struct Installation {
    name: &'static str,
    kubernetes: &'static str,
    values: &'static str,
}

/// Installations that together render every line of the templates.
const INSTALLATIONS: &[Installation] = &[
    Installation { name: "defaults", kubernetes: "1.27.0", values: "" },
    Installation {
        name: "both-networks",
        kubernetes: "1.36.0",
        values: "
agents:
  podNetwork: { enabled: true }
  zoneFromPod: true
  maxRate: 1Gbit/s
  hours: 20:00-06:00,12:00-13:00
  priorityClassName: system-node-critical
  podAnnotations: { example.net/owner: network }
  extraArguments: [--max-time, 1min]
  pools:
    - { name: zone-a, nodeSelector: { topology.kubernetes.io/zone: a }, labels: { site: a, rack: '7' } }
    - { name: zone-b, nodeSelector: { topology.kubernetes.io/zone: b }, labels: { site: b } }
imagePullSecrets: [{ name: registry }]
serviceMonitor: { enabled: true, labels: { release: prometheus } }
controller:
  replicas: 3
  store: postgres://linerate@postgres/linerate
  storePassword: { secretName: postgres }
  extraArguments: [--remote-write, 'https://mimir.example.net/api/v1/push']
  nodeSelector: { kubernetes.io/os: linux }
  tolerations: [{ key: control, operator: Exists }]
  affinity: { podAntiAffinity: {} }
  podAnnotations: { example.net/owner: network }
",
    },
    Installation {
        name: "agents-only",
        kubernetes: "1.30.0",
        values: "
agents: { hostNetwork: { enabled: false }, podNetwork: { enabled: true }, tolerations: [] }
controller: { enabled: false }
",
    },
    Installation {
        name: "file-on-a-volume",
        kubernetes: "1.30.0",
        values: "
controller: { volumeClaim: records }
networkPolicy: { enabled: false }
",
    },
];

/// Values that the chart refuses, and a part of the reason.
const REFUSED: &[(&str, &str)] = &[
    ("controller: { replicas: 2 }", "several controllers need PostgreSQL"),
    ("controller: { store: 'postgres://linerate:secret@postgres/linerate' }", "store"),
    ("controller: { store: 'postgres://linerate@postgres/linerate', volumeClaim: records }", "both set"),
    ("agents: { hostNetwork: { enabled: false } }", "both false"),
    ("agents: { pools: [{ name: zone_a }] }", "name"),
    ("agents: { pools: [{ name: a, labels: { network: host } }] }", "network"),
    ("agents: { maxRate: fast }", "maxRate"),
    ("agents: { hours: always }", "hours"),
    ("agent: { port: 4747 }", "agent"),
    ("fleet: ''", "fleet"),
];

/// Runs every check.
pub(crate) fn run_all(arguments: &Arguments) -> Result<()> {
    let tools = Tools::install()?;
    let version = format!("\nversion: {}\n", env!("CARGO_PKG_VERSION"));
    let chart = fs::read_to_string(Path::new(CHART).join("Chart.yaml")).context("reading Chart.yaml")?;
    let application = version.replace("version", "appVersion");
    ensure!(
        chart.contains(&version) && chart.contains(&application),
        "{CHART}/Chart.yaml: version and appVersion must be {}",
        env!("CARGO_PKG_VERSION")
    );

    let folder = tempfile::tempdir().context("making a temporary folder")?;
    for installation in INSTALLATIONS {
        tools.check_installation(installation, folder.path(), arguments.write)?;
    }
    for (values, reason) in REFUSED {
        tools.check_refusal(values, reason, folder.path())?;
    }
    eprintln!("<== {} sets of values are refused with the reason", REFUSED.len());

    let mut dashboards = Vec::new();
    for entry in fs::read_dir(DASHBOARDS).with_context(|| format!("reading {DASHBOARDS}"))? {
        dashboards.push(entry.with_context(|| format!("reading {DASHBOARDS}"))?.path());
    }
    dashboards.sort();
    eprint!("{}", tools.check("dashboards", &dashboards)?);
    Ok(())
}

/// Programs that the checks run.
struct Tools {
    helm: PathBuf,
    check: PathBuf,
}

impl Tools {
    /// Compiles the programs, which takes minutes the first time. Go keeps what it has compiled.
    fn install() -> Result<Self> {
        let metadata: Folders = crate::metadata::read(&["--no-deps"])?;
        let folder = metadata.target_directory.join("kubernetes");
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        eprintln!("==> go install {HELM}, go build {PROGRAM}");
        let mut helm = go();
        helm.args(["install", HELM]).env("GOBIN", &folder);
        go_run(helm)?;
        let check = folder.join("check");
        let mut build = go();
        build.current_dir(PROGRAM).args(["build", "-mod=readonly", "-o"]).arg(&check).arg(".");
        go_run(build)?;
        Ok(Self { helm: folder.join("helm"), check })
    }

    /// Lints and renders an installation, and decodes its manifests.
    fn check_installation(&self, installation: &Installation, folder: &Path, write: bool) -> Result<()> {
        let Installation { name, kubernetes, values } = installation;
        let file = folder.join(format!("{name}-values.yaml"));
        fs::write(&file, values).context("writing values")?;
        let mut lint = Command::new(&self.helm);
        lint.args(["lint", "--strict", "--quiet", CHART, "--kube-version", kubernetes, "--values"]).arg(&file);
        run(lint, CHECK).with_context(|| format!("installation {name}"))?;
        let text = self.template(&file, kubernetes).with_context(|| format!("installation {name}"))?.stdout;
        let rendered = folder.join(format!("{name}.yaml"));
        fs::write(&rendered, &text).context("writing manifests")?;
        eprint!("{}", self.check("manifests", &[rendered])?);
        if values.is_empty() {
            compare(&text, write)?;
        }
        Ok(())
    }

    fn template(&self, values: &Path, kubernetes: &str) -> Result<Output> {
        let mut template = Command::new(&self.helm);
        template.arg("template").args(RELEASE).args([CHART, "--kube-version", kubernetes, "--values"]).arg(values);
        run(template, CHECK)
    }

    /// Checks that rendering fails, with `reason` in the message.
    fn check_refusal(&self, values: &str, reason: &str, folder: &Path) -> Result<()> {
        let file = folder.join("refused-values.yaml");
        fs::write(&file, values).context("writing values")?;
        let Err(error) = self.template(&file, "1.30.0") else {
            bail!("the chart takes `{values}`, which it must refuse");
        };
        let output = error.downcast::<CommandFailed>()?.output;
        ensure!(output.contains(reason), "the chart refuses `{values}` without `{reason}`: {output}");
        Ok(())
    }

    /// Runs the strict decoder. Returns its summary, a line for each file.
    fn check(&self, kind: &str, files: &[PathBuf]) -> Result<String> {
        let mut command = Command::new(&self.check);
        command.arg(kind).args(files);
        Ok(run(command, CHECK)?.stdout)
    }
}

#[derive(serde::Deserialize)]
struct Folders {
    target_directory: PathBuf,
}

/// Compares the manifests of the default values with the file in the tree, or writes it.
fn compare(text: &str, write: bool) -> Result<()> {
    let head = "# The chart's manifests with its default values, made by `cargo xtask kubernetes --write`.\n";
    let text = format!("{head}{text}");
    if write {
        return fs::write(MANIFESTS, text).with_context(|| format!("writing {MANIFESTS}"));
    }
    let kept = fs::read_to_string(MANIFESTS).with_context(|| format!("reading {MANIFESTS}"))?;
    ensure!(kept == text, "{MANIFESTS} is not what the chart renders: run `cargo xtask kubernetes --write`");
    Ok(())
}

/// Returns the command `go`, also if it is not in PATH.
fn go() -> Command {
    let usual = Path::new("/usr/local/go/bin/go");
    let mut command = Command::new(if usual.is_file() { usual } else { Path::new("go") });
    command.env("GOFLAGS", "-buildvcs=false");
    command
}

fn go_run(command: Command) -> Result<()> {
    run(command, COMPILE).map(drop).context("this needs Go 1.26 or later, and its module proxy")
}
