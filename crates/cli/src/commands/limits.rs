//! `linerate limits`: what media can carry, layer by layer, and whether a claimed figure is possible.

use crate::exit::Failure;
use crate::output::{file_style, language, print, say, style};
use linerate_model::{BadStack, Bus, Encapsulation, IpVersion, Medium, Stack};
use linerate_report::limits::{self, LimitCell, Limits};
use linerate_units::{BitRate, ByteCount};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Calculate what a medium can carry, layer by layer and by message size
#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  linerate limits                       every medium, payload by message size
  linerate limits --medium 10gbase-t    every layer of one medium
  linerate limits --medium 1gbit/s --mtu 9000 --udp 8972 --tcp
  linerate limits --medium 1000base-t --over none --over vlan,vxlan
  linerate limits --medium 100base-tx --udp 64 --claim 77Mbit/s
  linerate limits --out limits.html     a page with a chart

Media: 10base-t, 100base-tx, 1000base-t, 10gbase-t, 25gbase-r to 800gbase-r, or
the rate of any Ethernet; fddi; atm-oc3-lane, atm-oc3-cip and oc12.
Encapsulations: vlan, qinq, pppoe, mpls, gre, vxlan, geneve, wireguard, esp.",
    after_long_help = "\
More examples:
  linerate limits --medium atm-oc3-lane --udp 1472 --explain    each byte of a packet
  linerate limits --medium 10base-t --tcp --half-duplex         acknowledgements share a hub
  linerate limits --bus pci-32-33,pcie-3-x4                     what the slot of a card can carry

All media: 10base-t, 100base-tx, 1000base-t, 2.5gbase-t, 5gbase-t, 10gbase-t, 25gbase-r, 40gbase-r, 50gbase-r, 100gbase-r, \
200gbase-r, 400gbase-r, 800gbase-r, or the rate of any Ethernet; fddi; atm-oc3-lane, atm-oc12-lane (LAN emulation version 1), \
atm-oc3-cip, atm-oc12-cip (classical IP). Encapsulation esp is tunnel mode with AES-GCM.

Exit codes: 0 calculated, and a --claim is possible as payload; 1 a --claim is not possible as payload (for one message size \
of one medium at least); 2 usage; 3 --out could not be written. The output names the highest layer at which it is possible (in --json claim_possible_at)."
)]
pub(crate) struct Arguments {
    /// Media, by name or rate [default: all]
    ///
    /// By name or by the rate of an Ethernet. The default is all with a name.
    #[arg(long, short = 'm', value_name = "NAME,...", value_delimiter = ',')]
    medium: Vec<Medium>,

    /// Buses of a card instead of media
    ///
    /// They are between a card and memory, by frame size: pci-32-33, pci-32-66, pci-64-33, pci-64-66, or pcie-1-x1 to
    /// pcie-5-x32.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with_all = OF_MEDIA)]
    bus: Vec<Bus>,

    /// UDP message sizes, bytes of payload
    ///
    /// The default is 64,128,256,512,1024,1472, and TCP.
    #[arg(long, short = 'u', value_name = "BYTES,...", value_delimiter = ',', num_args = 0..=1)]
    udp: Option<Vec<ByteCount>>,

    /// TCP in full segments
    #[arg(long)]
    tcp: bool,

    /// TCP without timestamps
    #[arg(long, hide_short_help = true)]
    no_timestamps: bool,

    /// Both directions share the medium, as on a hub: TCP's acknowledgements take part of it (Ethernet up to 1 Gbit/s)
    #[arg(long, hide_short_help = true)]
    half_duplex: bool,

    /// IP version of the packets that carry the messages
    #[arg(long, value_name = "4|6", default_value = "4", value_parser = ip_version, hide_short_help = true)]
    ip: IpVersion,

    /// IP version of the packets around tunnels
    #[arg(long, value_name = "4|6", default_value = "4", value_parser = ip_version, hide_short_help = true)]
    outer_ip: IpVersion,

    /// The medium's MTU [default: 1500]
    ///
    /// Without its own header and Ethernet's VLAN tags. The default is 1500, of FDDI 4352, of classical IP 9180.
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u32>,

    /// MTU that hosts use inside the encapsulations, for example 1420 with WireGuard [default: all that is left]
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    inner_mtu: Option<u32>,

    /// Tags and tunnels, or none
    ///
    /// They are around the packets, outermost first; repeat the option to compare.
    #[arg(long, value_name = "NAME,...")]
    over: Vec<Over>,

    /// Each header of a packet, and the arithmetic
    ///
    /// The headers stand in their order.
    #[arg(long)]
    explain: bool,

    /// Check whether this rate is possible
    ///
    /// Says at which layer it is possible; exits with 1 if not as payload.
    #[arg(long, value_name = "RATE")]
    claim: Option<BitRate>,

    /// Print only JSON
    ///
    /// One object for one message size of one medium, otherwise an array.
    #[arg(long, conflicts_with_all = ["csv", "markdown"])]
    json: bool,

    /// Print only comma-separated values
    #[arg(long, conflicts_with = "markdown", hide_short_help = true)]
    csv: bool,

    /// Print Markdown
    #[arg(long, hide_short_help = true)]
    markdown: bool,

    /// Also write .html, .svg, .md, .csv, .json or .txt
    ///
    /// .html has a chart, .svg is the chart alone.
    #[arg(long, short = 'o', value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What says something of a medium, and nothing of a bus.
const OF_MEDIA: [&str; 9] =
    ["medium", "udp", "tcp", "no_timestamps", "half_duplex", "mtu", "inner_mtu", "over", "explain"];

/// One `--over`.
#[derive(Debug, Clone)]
struct Over(Vec<Encapsulation>);

impl FromStr for Over {
    type Err = linerate_model::UnknownEncapsulation;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.eq_ignore_ascii_case("none") {
            return Ok(Self(Vec::new()));
        }
        text.split(',').map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

fn ip_version(text: &str) -> Result<IpVersion, String> {
    match text {
        "4" => Ok(IpVersion::V4),
        "6" => Ok(IpVersion::V6),
        other => Err(format!("`{other}` is no IP version; give 4 or 6")),
    }
}

/// What a file's name ends in, and so what it is to hold.
#[derive(Debug, Clone, Copy)]
enum Form {
    Html,
    Svg,
    Markdown,
    Csv,
    Json,
    Text,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let file = arguments.out.as_deref().map(|file| Ok((file, form(file)?))).transpose()?;
    if !arguments.bus.is_empty() {
        return of_buses(arguments, file);
    }
    let limits = arguments.limits()?;
    if let Some((file, form)) = file {
        write(&limits, file, form)?;
    }
    print(&if arguments.json {
        limits::json(&limits)
    } else if arguments.csv {
        limits::csv(&limits)
    } else if arguments.markdown {
        limits::markdown(language(), &limits)
    } else {
        limits::text(&limits, &style())
    });
    if limits.claim_holds() { Ok(()) } else { Err(Failure::Missed) }
}

/// What buses carry.
fn of_buses(arguments: &Arguments, file: Option<(&Path, Form)>) -> Result<(), Failure> {
    let buses = &arguments.bus;
    if arguments.claim.is_some() {
        return Err(Failure::usage("--claim is held against media: it does not go with --bus"));
    }
    if let Some((file, form)) = file {
        let style = file_style();
        let text = match form {
            Form::Html | Form::Svg => {
                return Err(Failure::usage("--bus has no chart: end the file's name in .md, .csv, .json or .txt"));
            }
            Form::Markdown => limits::buses::markdown(style.language, buses),
            Form::Csv => limits::buses::csv(buses),
            Form::Json => limits::buses::json(buses),
            Form::Text => limits::buses::text(buses, &style),
        };
        save(file, text)?;
    }
    print(&if arguments.json {
        limits::buses::json(buses)
    } else if arguments.csv {
        limits::buses::csv(buses)
    } else if arguments.markdown {
        limits::buses::markdown(language(), buses)
    } else {
        limits::buses::text(buses, &style())
    });
    Ok(())
}

impl Arguments {
    fn limits(&self) -> Result<Limits, Failure> {
        let named = !self.medium.is_empty();
        let media = if named { self.medium.clone() } else { Medium::named().collect() };
        let overs = if self.over.is_empty() { vec![Over(Vec::new())] } else { self.over.clone() };
        let (mut cells, mut left_out, mut reason) = (Vec::new(), Vec::new(), None);
        for medium in media {
            for over in &overs {
                match self.cells(&self.stack(medium, over)) {
                    Ok(of_stack) => cells.extend(of_stack),
                    Err(error) if named => return Err(Failure::usage(format!("{medium}: {error}"))),
                    Err(error) => {
                        left_out.push(medium.to_string());
                        reason.get_or_insert(error);
                    }
                }
            }
        }
        if cells.is_empty() {
            return Err(Failure::usage(reason.map(|error| error.to_string()).unwrap_or_default()));
        }
        left_out.dedup();
        let left_out = reason.map(|error| format!("Left out: {}, as {error}.", left_out.join(", ")));
        let overview = self.udp.is_none() && !self.tcp;
        Ok(Limits { cells, overview, explain: self.explain, claim: self.claim, left_out })
    }

    fn stack(&self, medium: Medium, over: &Over) -> Stack {
        Stack {
            medium,
            over: over.0.clone(),
            ip: self.ip,
            outer_ip: self.outer_ip,
            mtu: self.mtu,
            inner_mtu: self.inner_mtu,
            tcp_timestamps: !self.no_timestamps,
            half_duplex: self.half_duplex,
        }
    }

    /// Each message asked for over this stack.
    fn cells(&self, stack: &Stack) -> Result<Vec<LimitCell>, BadStack> {
        let chosen = |sizes: &[ByteCount]| sizes.iter().map(|size| size.get()).collect::<Vec<_>>();
        let sizes = match &self.udp {
            Some(sizes) if !sizes.is_empty() => chosen(sizes),
            None if self.tcp => Vec::new(),
            _ => Limits::SIZES.to_vec(),
        };
        let mut cells = sizes.into_iter().map(|size| LimitCell::udp(stack, size)).collect::<Result<Vec<_>, _>>()?;
        if self.tcp || self.udp.is_none() {
            cells.push(LimitCell::tcp(stack)?);
        }
        Ok(cells)
    }
}

fn form(file: &Path) -> Result<Form, Failure> {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("html" | "htm") => Ok(Form::Html),
        Some("svg") => Ok(Form::Svg),
        Some("md") => Ok(Form::Markdown),
        Some("csv") => Ok(Form::Csv),
        Some("json") => Ok(Form::Json),
        Some("txt") => Ok(Form::Text),
        _ => Err(Failure::usage(format!(
            "cannot tell the form from the name {}; end it in .html, .svg, .md, .csv, .json or .txt",
            file.display()
        ))),
    }
}

fn write(limits: &Limits, file: &Path, form: Form) -> Result<(), Failure> {
    let style = file_style();
    let text = match form {
        Form::Html => limits::html(style.language, limits),
        Form::Svg => limits::svg(style.language, limits),
        Form::Markdown => limits::markdown(style.language, limits),
        Form::Csv => limits::csv(limits),
        Form::Json => limits::json(limits),
        Form::Text => limits::text(limits, &style),
    };
    save(file, text)
}

fn save(file: &Path, text: String) -> Result<(), Failure> {
    crate::private_report::write(file, text).map_err(|error| {
        Failure::measure(format!("cannot write {}: {error}; name another file with --out", file.display()))
    })?;
    say(&format!("linerate: written to {}", file.display()));
    Ok(())
}
