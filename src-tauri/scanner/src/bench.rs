//! `scanner --bench`: how much is read, how much of it wrong, and what it costs, against rqrr alone.

use anyhow::{Context, bail};
use scanner::frames::pictures;
use scanner::{Luma, RESCUE_EVERY, decode};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One way to read a picture: what it found, what it cost.
type Read = fn(&Luma) -> (Vec<String>, Cost);

/// What a picture cost.
#[derive(Clone, Copy)]
struct Cost {
    /// The share of one frame: the rescue stage sees only every n-th frame that had nothing.
    usual: Duration,
    /// All stages on this one frame.
    worst: Duration,
}

/// Frames with nothing in them, for the price of waiting.
const EMPTY_FRAMES: u32 = 10;

/// What takes longer is measured once.
const LONG: Duration = Duration::from_millis(100);

const WAYS: [(&str, Read); 3] = [("live", live), ("still", still), ("rqrr alone", rqrr_alone)];

/// This thread's processor time; decoding is done on it alone.
#[cfg(unix)]
fn clock() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// The nearest to it elsewhere.
#[cfg(not(unix))]
fn clock() -> Duration {
    use std::{sync::LazyLock, time::Instant};
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

fn live(luma: &Luma) -> (Vec<String>, Cost) {
    let start = clock();
    let texts = decode::main_stage(luma);
    let main = clock() - start;
    if !texts.is_empty() {
        return (texts, Cost { usual: main, worst: main });
    }
    let texts = decode::rescue_stage(luma, decode::LIVE_BUDGET);
    let worst = clock() - start;
    (texts, Cost { usual: main + (worst - main) / RESCUE_EVERY, worst })
}

fn still(luma: &Luma) -> (Vec<String>, Cost) {
    whole(luma, decode::still)
}

fn rqrr_alone(luma: &Luma) -> (Vec<String>, Cost) {
    whole(luma, decode::rqrr_alone)
}

fn whole(luma: &Luma, read: fn(&Luma) -> Vec<String>) -> (Vec<String>, Cost) {
    let start = clock();
    let texts = read(luma);
    let cost = clock() - start;
    (texts, Cost { usual: cost, worst: cost })
}

/// The cheapest of three, unless it takes long: what else the machine does is not the decoder's cost.
fn best(read: Read, luma: &Luma) -> (Vec<String>, Cost) {
    let (texts, mut cost) = read(luma);
    if cost.worst < LONG {
        for _ in 0..2 {
            let (_, again) = read(luma);
            cost = Cost { usual: cost.usual.min(again.usual), worst: cost.worst.min(again.worst) };
        }
    }
    (texts, cost)
}

/// A folder's pictures with what is in them; `None` where the folder does not say.
struct Folder {
    name: String,
    pictures: Vec<(PathBuf, Option<String>)>,
    has_truth: bool,
}

/// Prints the table, a folder at a time.
pub(crate) fn run(folders: &[PathBuf], out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(
        out,
        "{:<18}{:<12}{:>6}{:>9}{:>7}{:>8}{:>11}{:>9}{:>10}",
        "folder", "decoder", "files", "correct", "wrong", "missed", "median ms", "p95 ms", "worst ms"
    )?;
    let mut totals = [Tally::default(), Tally::default(), Tally::default()];
    let mut several = 0;
    for path in folders {
        let folder = load(path)?;
        several += usize::from(folder.has_truth);
        for ((way, read), sum) in WAYS.iter().zip(&mut totals) {
            let mut tally = Tally::default();
            for (file, truth) in &folder.pictures {
                let luma = pictures::read_luma(file).with_context(|| file.display().to_string())?;
                let (texts, cost) = best(*read, &luma);
                tally.count(&texts, truth.as_deref(), folder.has_truth, cost);
            }
            tally.print(&folder.name, way, folder.has_truth, out)?;
            if folder.has_truth {
                sum.add(tally);
            }
        }
    }
    if several > 1 {
        for ((way, _), sum) in WAYS.iter().zip(&totals) {
            sum.print("all with answers", way, true, out)?;
        }
    }
    for (way, read) in WAYS {
        let mut tally = Tally::default();
        for seed in 0..EMPTY_FRAMES {
            let (texts, cost) = best(read, &empty_frame(seed));
            tally.count(&texts, None, false, cost);
        }
        tally.print("empty 1280x720", way, false, out)?;
    }
    Ok(())
}

fn load(path: &Path) -> anyhow::Result<Folder> {
    let files = pictures::list(path).with_context(|| path.display().to_string())?;
    if files.is_empty() {
        bail!("{}: no pictures in this folder", path.display());
    }
    let truth_file = path.join("truth.tsv");
    let truth = if truth_file.exists() {
        Some(read_truth(&truth_file).with_context(|| truth_file.display().to_string())?)
    } else {
        None
    };
    let answer = |file: &Path| {
        let name = file.file_name()?.to_str()?;
        truth.as_ref()?.get(name).cloned()
    };
    let pictures: Vec<_> = files.into_iter().map(|file| (file.clone(), answer(&file))).collect();
    let name = path.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    Ok(Folder { name: name.unwrap_or_else(|| path.display().to_string()), pictures, has_truth: truth.is_some() })
}

/// File name, tab, text; the text as a JSON string where it starts with a quotation mark.
fn read_truth(file: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut truth = BTreeMap::new();
    for (i, line) in std::fs::read_to_string(file)?.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let (name, text) = line.split_once('\t').with_context(|| format!("line {}: no tab", i + 1))?;
        let text = if text.starts_with('"') {
            serde_json::from_str(text).with_context(|| format!("line {}", i + 1))?
        } else {
            text.to_owned()
        };
        truth.insert(name.to_owned(), text);
    }
    Ok(truth)
}

/// A wall in uneven light with the noise of a sensor: what a camera sees when nobody is there.
fn empty_frame(seed: u32) -> Luma {
    let (width, height) = (1280usize, 720usize);
    let mut noise = 0x9e37_79b9u32.wrapping_mul(seed + 1);
    let pixels = (0..width * height)
        .map(|i| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (x, y) = (i % width, i / width);
            (60 + x * 100 / width + y * 40 / height) as u8 + (noise >> 29) as u8
        })
        .collect();
    Luma::new(pixels, width, height).unwrap_or_else(|| unreachable!("the size is fixed"))
}

#[derive(Default)]
struct Tally {
    correct: usize,
    wrong: usize,
    missed: usize,
    usual: Vec<Duration>,
    worst: Duration,
}

impl Tally {
    fn count(&mut self, texts: &[String], truth: Option<&str>, has_truth: bool, cost: Cost) {
        let correct = match truth {
            Some(truth) => texts.iter().any(|text| text == truth),
            None => texts.is_empty(),
        };
        self.correct += usize::from(correct);
        self.wrong += usize::from(texts.iter().any(|text| truth != Some(text.as_str())));
        self.missed += usize::from(has_truth && truth.is_some() && !correct);
        self.usual.push(cost.usual);
        self.worst = self.worst.max(cost.worst);
    }

    fn add(&mut self, other: Self) {
        self.correct += other.correct;
        self.wrong += other.wrong;
        self.missed += other.missed;
        self.usual.extend(other.usual);
        self.worst = self.worst.max(other.worst);
    }

    fn print(&self, folder: &str, way: &str, has_truth: bool, out: &mut impl Write) -> anyhow::Result<()> {
        let mut sorted = self.usual.clone();
        sorted.sort_unstable();
        let rank = |share: f64| {
            let last = sorted.len().saturating_sub(1);
            sorted.get((last as f64 * share).round() as usize).map_or(0.0, |cost| cost.as_secs_f64() * 1000.0)
        };
        let files = sorted.len();
        let missed = if has_truth { self.missed.to_string() } else { "-".to_owned() };
        let (correct, wrong) = (self.correct, self.wrong);
        let (median, p95, worst) = (rank(0.5), rank(0.95), self.worst.as_secs_f64() * 1000.0);
        writeln!(
            out,
            "{folder:<18}{way:<12}{files:>6}{correct:>9}{wrong:>7}{missed:>8}{median:>11.1}{p95:>9.1}{worst:>10.1}"
        )?;
        out.flush()?;
        Ok(())
    }
}
