//! `cargo xtask controls`: takes guards away, one patch at a time, in a copy of the tree, and sees that the tests notice.
//! tests/controls/README.md says how a patch is written.

use crate::cargo::Target;
use crate::process::{outcome, output, program, quoted_words, root};
use crate::{apt, npm};
use anyhow::{Context, bail, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the patches are.
const FOLDER: &str = "tests/controls";

/// All controls, or the one that is named.
pub(crate) fn controls(name: Option<&str>) -> anyhow::Result<()> {
    let patches = patches(name)?;
    ensure!(!patches.is_empty(), "there is no such control: {}/{}.patch", FOLDER, name.unwrap_or("*"));
    apt::install(apt::TO_RUN)?;
    npm::install()?;
    npm::build()?;
    judge(&Target::take()?, &patches)
}

/// Those of every test run, on a target folder that is held already: each costs a build.
pub(crate) fn short(target: &Target) -> anyhow::Result<()> {
    let mut patches = patches(None)?;
    patches.retain(|(_, control)| control.in_every_run);
    ensure!(!patches.is_empty(), "no control says `# in every test run`");
    judge(target, &patches)
}

fn patches(name: Option<&str>) -> anyhow::Result<Vec<(PathBuf, Control)>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(root().join(FOLDER))
        .with_context(|| format!("cannot read {FOLDER}"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "patch"));
    if let Some(name) = name {
        let name = name.trim_end_matches(".patch");
        paths.retain(|path| path.file_stem().is_some_and(|stem| stem == name));
    }
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let control = Control::parse(&text).with_context(|| path.display().to_string())?;
        Ok((path, control))
    };
    paths.into_iter().map(read).collect()
}

/// Judges all, so that one run tells of everything that is wrong.
fn judge(target: &Target, patches: &[(PathBuf, Control)]) -> anyhow::Result<()> {
    let (mut passed, mut failed) = (BTreeSet::new(), Vec::new());
    for (patch, control) in patches {
        let shown = patch.strip_prefix(root()).unwrap_or(patch).display();
        if let Err(error) = judge_one(target, patch, control, &mut passed) {
            println!("{shown}: FAILED: {error:#}");
            failed.push(shown.to_string());
        }
    }
    println!("controls: {} passed, {} failed", patches.len() - failed.len(), failed.len());
    ensure!(failed.is_empty(), "these controls failed: {}", failed.join(", "));
    Ok(())
}

fn judge_one(
    target: &Target,
    patch: &Path,
    control: &Control,
    passed: &mut BTreeSet<Vec<String>>,
) -> anyhow::Result<()> {
    let shown = patch.strip_prefix(root()).unwrap_or(patch).display();
    // A test that fails with all guards in place would prove nothing.
    if !passed.contains(&control.run) {
        println!("as it is: {}", control.run.join(" "));
        control.judge(&Expectation::Pass, target, root())?;
        passed.insert(control.run.clone());
    }
    println!("{shown}: {}", control.run.join(" "));
    let copy = copy_of_the_tree(target)?;
    apply(patch, &copy)?;
    control.judge(&control.expect, target, &copy).with_context(|| format!("with {shown}"))?;
    println!(
        "{shown}: {}",
        match &control.expect {
            Expectation::Pass => "passes all the same, as it should".to_owned(),
            Expectation::Fail(text) => format!("fails as it should: {text}"),
        }
    );
    Ok(())
}

/// What a patch's first lines say.
#[derive(Debug, PartialEq, Eq)]
struct Control {
    /// A `cargo test` command.
    run: Vec<String>,
    expect: Expectation,
    /// Whether every test run looks at it, and not only `cargo xtask controls`.
    in_every_run: bool,
}

/// How it ends with the patch.
#[derive(Debug, PartialEq, Eq)]
enum Expectation {
    Pass,
    /// A test fails, and says this.
    Fail(String),
}

impl Control {
    /// Reads `# run: cargo test …` and `# expect: pass` or `# expect: fail: TEXT` from the lines above the patch.
    fn parse(text: &str) -> anyhow::Result<Self> {
        let (mut run, mut expect, mut in_every_run) = (None, None, false);
        for line in text.lines().map_while(|line| line.strip_prefix('#')) {
            match line.trim().split_once(':').map(|(key, value)| (key.trim(), value.trim())) {
                Some(("run", command)) => {
                    ensure!(run.is_none(), "`# run:` stands there twice");
                    run = Some(command.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
                }
                Some(("expect", expected)) => {
                    ensure!(expect.is_none(), "`# expect:` stands there twice");
                    expect = Some(match expected.split_once(':').map(|(word, text)| (word.trim(), text.trim())) {
                        Some(("fail", text)) if !text.is_empty() => Expectation::Fail(text.to_owned()),
                        None if expected == "pass" => Expectation::Pass,
                        _ => bail!("`# expect:` is `pass` or `fail: TEXT`, not `{expected}`"),
                    });
                }
                None if line.trim() == "in every test run" => in_every_run = true,
                _ => {}
            }
        }
        let run = run.context("the first lines lack `# run: cargo test …`")?;
        ensure!(run.starts_with(&["cargo".to_owned(), "test".to_owned()]), "`# run:` must start with `cargo test`");
        let expect = expect.context("the first lines lack `# expect: …`")?;
        Ok(Self { run, expect, in_every_run })
    }

    /// Runs the command in a tree and holds its end against what is expected.
    fn judge(&self, expected: &Expectation, target: &Target, tree: &Path) -> anyhow::Result<()> {
        let mut command = target.cargo_in(tree);
        command.args(&self.run[1..]);
        let ended = outcome(&mut command)?;
        let said = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
        let verdict = verdict(expected, ended.status.success(), &said);
        if verdict.is_err() {
            println!("{said}");
        }
        verdict.with_context(|| quoted_words(&command))
    }
}

/// Whether a run of tests ended as expected. What did not build, or ran no test, is neither a pass nor a fail.
fn verdict(expected: &Expectation, success: bool, said: &str) -> anyhow::Result<()> {
    let (passed, failed) = counts(said);
    ensure!(passed + failed > 0, "no test ran");
    match expected {
        Expectation::Pass => ensure!(success && failed == 0, "it was to pass, and failed"),
        Expectation::Fail(text) => {
            ensure!(
                !success && failed > 0,
                "it was to fail, and passed: the test does not notice that the guard is gone"
            );
            ensure!(said.contains(text), "it failed for another reason than this one: {text}");
        }
    }
    Ok(())
}

/// Tests that passed and failed, from the lines `test result: ok. 3 passed; 0 failed; …`.
fn counts(said: &str) -> (usize, usize) {
    let mut sum = (0, 0);
    for line in said.lines().filter_map(|line| line.trim().strip_prefix("test result: ")) {
        for part in line.split(['.', ';']) {
            match part.trim().split_once(' ') {
                Some((number, "passed")) => sum.0 += number.parse().unwrap_or(0),
                Some((number, "failed")) => sum.1 += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
    sum
}

/// A copy of the working tree as git sees it, and of the built pages, without which the kiosk does not build; always at one
/// place, so that cargo compiles only what a patch changes. Whoever holds the target folder holds the copy.
fn copy_of_the_tree(target: &Target) -> anyhow::Result<PathBuf> {
    let home = target.folder().join("controls");
    let copy = home.join("tree");
    fs::create_dir_all(&copy).with_context(|| format!("cannot make {}", copy.display()))?;
    share_pictures(&home)?;
    let list = |arguments: &[&str]| {
        let list =
            output(program("git", root()).args(["ls-files", "-z", "--others", "--exclude-standard"]).args(arguments))?;
        String::from_utf8(list).context("a file's name is no UTF-8")
    };
    let list = list(&["--cached"])? + &list(&["--ignored", "ui/dist"])?;
    let mut wanted = BTreeSet::new();
    for name in list.split('\0').filter(|name| !name.is_empty()) {
        // Deleted in the working tree, or a link to somewhere else: neither has a place in the copy.
        if !fs::symlink_metadata(root().join(name)).is_ok_and(|file| file.is_file()) {
            continue;
        }
        let content = fs::read(root().join(name)).with_context(|| format!("cannot read {name}"))?;
        write_if_changed(&copy.join(name), &as_in_copy(name, content))?;
        wanted.insert(copy.join(name));
    }
    remove_others(&copy, &wanted)?;
    Ok(copy)
}

/// Tests look for the shared pictures beside the tree.
fn share_pictures(home: &Path) -> anyhow::Result<()> {
    let (link, shared) = (home.join("shared"), root().join("../shared"));
    if link.symlink_metadata().is_ok() {
        fs::remove_file(&link).with_context(|| format!("cannot remove {}", link.display()))?;
    }
    #[cfg(unix)]
    if let Ok(shared) = shared.canonicalize() {
        std::os::unix::fs::symlink(shared, &link).with_context(|| format!("cannot make {}", link.display()))?;
    }
    Ok(())
}

/// The copy's own crates get a version of their own. Without it cargo would take them for those of this tree, which are
/// in the same target folder, and what was built from a patch could pass as built from here.
fn as_in_copy(name: &str, content: Vec<u8>) -> Vec<u8> {
    const HEADER: &str = "[workspace.package]\n";
    let Ok(text) = std::str::from_utf8(&content) else { return content };
    let changed = match name {
        "Cargo.toml" => {
            text.split_once(HEADER).map(|(before, after)| format!("{before}{HEADER}{}", mark_version(after)))
        }
        "Cargo.lock" => Some(
            text.split_inclusive("[[package]]\n")
                .map(|block| if block.contains("\nsource = ") { block.to_owned() } else { mark_version(block) })
                .collect(),
        ),
        _ => None,
    };
    changed.map_or(content, String::into_bytes)
}

/// Marks the first version in a text: `version = "0.1.0"` becomes `version = "0.1.0+control"`.
fn mark_version(text: &str) -> String {
    const KEY: &str = "version = \"";
    // A lock file starts with the version of its own format, which is a number without quotation marks.
    match text.split_once(KEY).and_then(|(before, after)| Some((before, after.split_once('"')?))) {
        Some((before, (version, after))) => format!("{before}{KEY}{version}+control\"{after}"),
        None => text.to_owned(),
    }
}

/// Leaves a file alone that holds this already: its time tells cargo what to compile again.
fn write_if_changed(file: &Path, content: &[u8]) -> anyhow::Result<()> {
    if fs::read(file).is_ok_and(|there| there == content) {
        return Ok(());
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(file, content).with_context(|| format!("cannot write {}", file.display()))
}

/// Removes every file that an earlier tree or patch has left.
fn remove_others(folder: &Path, wanted: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let removed = if wanted.contains(&path) {
            Ok(())
        } else if path.is_dir() && !path.is_symlink() {
            remove_others(&path, wanted)?;
            // Fails where something wanted is in it.
            fs::remove_dir(&path).or(Ok(()))
        } else {
            fs::remove_file(&path)
        };
        removed.with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// Applies a patch to the copy; what does not fit exactly is a fault of the patch, which has to be made anew.
fn apply(patch: &Path, copy: &Path) -> anyhow::Result<()> {
    let mut command: Command = program("git", copy);
    // Where a folder above is a repository of its own, git would look for the files there and leave out all of ours.
    command.env("GIT_CEILING_DIRECTORIES", copy.parent().unwrap_or(copy)).arg("apply").arg(patch);
    let ended = outcome(&mut command)?;
    let said = String::from_utf8_lossy(&ended.stderr);
    ensure!(ended.status.success(), "{} does not fit the code any more; make it anew\n{said}", patch.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patchs_first_lines_say_what_to_run_and_what_to_expect() {
        let control = |text: &str| Control::parse(text).unwrap();
        let run: Vec<_> = ["cargo", "test", "--workspace", "--test", "api", "--", "once"].map(str::to_owned).into();
        let head = "# Without the guard.\n#run: cargo test --workspace --test api -- once\n";
        assert_eq!(
            control(&format!("{head}# expect: pass\n--- a/x\n")),
            Control { run: run.clone(), expect: Expectation::Pass, in_every_run: false }
        );
        let rest = "# in every test run\n# expect: fail: left: 2, right: 1\n\ndiff --git a/x b/x\n";
        let expect = Expectation::Fail("left: 2, right: 1".to_owned());
        assert_eq!(control(&format!("{head}{rest}")), Control { run, expect, in_every_run: true });
    }

    #[test]
    fn a_patch_that_does_not_say_so_is_refused() {
        for (text, why) in [
            ("", "# run:"),
            ("--- a/x\n# run: cargo test\n# expect: pass", "# run:"),
            ("# run: cargo test\n", "# expect:"),
            ("# run: rm -rf /\n# expect: pass\n", "cargo test"),
            ("# run: cargo test\n# expect: fail\n", "fail: TEXT"),
            ("# run: cargo test\n# expect: fail:\n", "fail: TEXT"),
            ("# run: cargo test\n# expect: pass\n# expect: pass\n", "twice"),
        ] {
            let error = Control::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }

    #[test]
    fn only_tests_that_ran_count() {
        let ok = "test result: ok. 2 passed; 0 failed; 0 ignored\ntest result: ok. 0 passed; 0 failed; 0 ignored\n";
        let none = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out\n";
        let bad = "two have won\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n";
        let fail = Expectation::Fail("two have won".to_owned());
        assert!(verdict(&Expectation::Pass, true, ok).is_ok());
        assert!(verdict(&Expectation::Pass, true, none).is_err());
        assert!(verdict(&Expectation::Pass, false, bad).is_err());
        assert!(verdict(&fail, false, bad).is_ok());
        assert!(verdict(&fail, true, ok).is_err(), "the guard is gone and nobody noticed");
        assert!(verdict(&fail, false, "error[E0425]: two have won").is_err(), "it did not build");
        assert!(verdict(&Expectation::Fail("another text".to_owned()), false, bad).is_err());
    }

    #[test]
    fn the_copys_own_crates_have_a_version_of_their_own() {
        let marked = |name, text: &str| String::from_utf8(as_in_copy(name, text.as_bytes().to_vec())).unwrap();
        assert_eq!(
            marked("Cargo.toml", "[workspace]\n[workspace.package]\nversion = \"0.1.0\"\n[x]\nversion = \"1\"\n"),
            "[workspace]\n[workspace.package]\nversion = \"0.1.0+control\"\n[x]\nversion = \"1\"\n"
        );
        assert_eq!(
            marked(
                "Cargo.lock",
                "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry\"\n\n\
                 [[package]]\nname = \"wire\"\nversion = \"0.1.0\"\ndependencies = [\n \"a\",\n]\n"
            ),
            "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry\"\n\n\
             [[package]]\nname = \"wire\"\nversion = \"0.1.0+control\"\ndependencies = [\n \"a\",\n]\n"
        );
        assert_eq!(marked("README.md", "version = \"0.1.0\""), "version = \"0.1.0\"");
    }
}
