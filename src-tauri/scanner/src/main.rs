//! `scanner`: what the kiosk's scanner reads, on a command line. One JSON line a code on standard output.

mod bench;

use anyhow::Context;
use clap::{ArgGroup, Parser};
use scanner::frames::pictures;
use scanner::{Code, Reading, Scanner, Source, SourceState, decode};
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;

/// Reads QR codes from pictures or a camera; prints one JSON line a code.
///
/// Exit status: 0 when every picture held a code, 1 when one held none or could not be read, 2 for wrong usage.
#[derive(Parser)]
#[command(version, group = ArgGroup::new("what").required(true).args(["paths", "camera"]))]
struct Arguments {
    /// Pictures (JPEG, PNG, WebP), or folders of them
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Read from this camera until interrupted
    #[arg(long, value_name = "N")]
    camera: Option<u32>,

    /// Measure on folders with right answers (truth.tsv): our pipeline, live and still, against rqrr alone
    #[arg(long, conflicts_with = "camera")]
    bench: bool,
}

/// A line of output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    file: &'a str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    order_no: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verify_code: Option<&'a str>,
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(io::stderr)
        .init();
    let arguments = Arguments::parse();
    let mut out = io::stdout().lock();
    let done = match arguments {
        Arguments { camera: Some(index), .. } => watch(index, &mut out).map(|()| true),
        Arguments { bench: true, paths, .. } => bench::run(&paths, &mut out).map(|()| true),
        Arguments { paths, .. } => read_all(&paths, &mut out),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // Whoever read the output has seen enough (`scanner … | head -1`).
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Every picture of every path. True when each held a code.
fn read_all(paths: &[PathBuf], out: &mut impl Write) -> anyhow::Result<bool> {
    let mut all = true;
    for path in paths {
        let files = match pictures::list(path) {
            Ok(files) if files.is_empty() => {
                complain(&format!("{}: no JPEG, PNG or WebP picture in this folder", path.display()));
                all = false;
                continue;
            }
            Ok(files) => files,
            Err(error) => {
                complain(&format!("{}: {error}", path.display()));
                all = false;
                continue;
            }
        };
        for file in files {
            all &= read_one(&file, out)?;
        }
    }
    Ok(all)
}

fn read_one(file: &Path, out: &mut impl Write) -> anyhow::Result<bool> {
    let luma = match pictures::read_luma(file) {
        Ok(luma) => luma,
        Err(error) => {
            complain(&format!("{}: {error}", file.display()));
            return Ok(false);
        }
    };
    let texts = decode::still(&luma);
    let name = file.to_string_lossy();
    for text in &texts {
        print(&name, text, &Code::read(text), out)?;
    }
    Ok(!texts.is_empty())
}

/// The live pipeline until the process is interrupted.
fn watch(index: u32, out: &mut impl Write) -> anyhow::Result<()> {
    enum News {
        Reading(Reading),
        State(SourceState),
    }
    let name = format!("camera {index}");
    let (tell, news) = mpsc::channel();
    let tell_state = tell.clone();
    // The receiver lives as long as the scanner, so nothing is lost by ignoring a send error.
    let _scanner = Scanner::with_texts(
        Source::Camera { index, name: None },
        move |reading| drop(tell.send(News::Reading(reading))),
        move |state| drop(tell_state.send(News::State(state))),
    );
    for news in news {
        match news {
            News::Reading(reading) => print(&name, &reading.text, &reading.code, out)?,
            News::State(state) => complain(&format!("{name}: {}", in_words(state))),
        }
    }
    anyhow::bail!("{name}: the scanner has ended")
}

fn print(file: &str, text: &str, code: &Code, out: &mut impl Write) -> anyhow::Result<()> {
    let (order_no, verify_code) = match code {
        Code::Ours(payload) => (Some(payload.order_no.as_str()), Some(payload.verify_code.expose())),
        Code::Foreign => (None, None),
    };
    let line = serde_json::to_string(&Line { file, text, order_no, verify_code })?;
    writeln!(out, "{line}").and_then(|()| out.flush()).context("standard output")
}

/// The state and what to do about it.
fn in_words(state: SourceState) -> &'static str {
    match state {
        SourceState::Opening => "being opened",
        SourceState::Live => "live",
        SourceState::NoCamera => "there is no such camera; plug it in, it will be found",
        SourceState::Lost => "the camera is gone; plug it in again, it will be found",
        SourceState::Busy => "another program uses the camera; close that program",
        SourceState::NoPermission => "this user may not use the camera; on Linux, add the user to the group `video`",
        SourceState::Stalled => "the camera does not answer; unplug it and plug it in again",
        SourceState::BrokenFrames => "the camera sends damaged pictures; try another cable or socket",
        SourceState::Unsupported => "the camera offers no format that can be read; use another camera",
        SourceState::NoPictures => "no pictures there yet",
    }
}

fn complain(sentence: &str) {
    // Standard error may be closed; there is nowhere left to say so.
    let _ = writeln!(io::stderr(), "scanner: {sentence}");
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
