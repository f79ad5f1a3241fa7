//! Steps one after another, each with its time; the first that fails is the last.

use std::time::{Duration, Instant};

/// What has been done so far.
pub(crate) struct Steps {
    begun: Instant,
    done: Vec<(&'static str, Duration)>,
    open: Vec<String>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), done: Vec::new(), open: Vec::new() }
    }

    /// Does a step. Where it fails, says what had been done until then.
    pub(crate) fn step(&mut self, name: &'static str, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        println!("\n== {name}");
        let begun = Instant::now();
        let result = work();
        let took = begun.elapsed();
        match result {
            Ok(()) => {
                println!("== {name}: done in {}", minutes(took));
                self.done.push((name, took));
                Ok(())
            }
            Err(error) => {
                println!("== {name}: FAILED after {}", minutes(took));
                self.list();
                println!("steps: {} passed, 1 failed", self.done.len());
                Err(error.context(format!("step `{name}`")))
            }
        }
    }

    /// Something was not looked at. It is said at the end again, so that nobody takes it for checked.
    pub(crate) fn not_checked(&mut self, what: impl Into<String>) {
        let what = what.into();
        println!("NOT CHECKED: {what}");
        self.open.push(what);
    }

    /// The times, what was left out, and the last line.
    pub(crate) fn finish(self) {
        self.list();
        for what in &self.open {
            println!("NOT CHECKED: {what}");
        }
        println!("steps: {} passed, 0 failed, {} skipped", self.done.len(), self.open.len());
    }

    fn list(&self) {
        println!();
        for (name, took) in &self.done {
            println!("{:>9}  {name}", minutes(*took));
        }
        println!("{:>9}  in all", minutes(self.begun.elapsed()));
    }
}

fn minutes(time: Duration) -> String {
    let tenths = time.as_millis().div_ceil(100);
    let (minutes, tenths) = (tenths / 600, tenths % 600);
    format!("{minutes}:{:02}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_minutes_and_seconds() {
        let at = |ms| minutes(Duration::from_millis(ms));
        assert_eq!((at(0).as_str(), at(9_900).as_str(), at(59_950).as_str()), ("0:00.0", "0:09.9", "1:00.0"));
        assert_eq!(at(3_725_000), "62:05.0");
    }

    #[test]
    fn a_failed_step_is_named() {
        let mut steps = Steps::new();
        steps.step("first", || Ok(())).unwrap();
        let error = steps.step("second", || anyhow::bail!("no")).unwrap_err();
        assert_eq!(format!("{error:#}"), "step `second`: no");
        assert_eq!(steps.done.len(), 1);
    }
}
